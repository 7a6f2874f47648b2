// cycles.ts - finds the formulas that wait for themselves.
import type { Formula, Needs } from './cells';

/**
 * The formulas of circles, among those that wait for others. They are in strongly connected components of several nodes of a graph in
 * which a formula leads to what it needs, and that to its formulas (Tarjan's algorithm).
 */
export function circular(waiting: Iterable<Formula>): Formula[] {
	type Node = Formula | Needs;
	const index = new Map<Node, number>();
	const low = new Map<Node, number>();
	const open: Node[] = [];
	const isOpen = new Set<Node>();
	const found: Formula[] = [];
	for (const root of waiting) {
		if (index.has(root)) continue;
		const stack: { node: Node; others: Node[]; next: number }[] = [];
		const enter = (node: Node) => {
			index.set(node, index.size);
			low.set(node, index.get(node)!);
			open.push(node);
			isOpen.add(node);
			stack.push({ node, others: 'formulas' in node ? node.formulas : node.waits ? [node.waits] : [], next: 0 });
		};
		enter(root);
		while (stack.length > 0) {
			const top = stack.at(-1)!;
			const { node } = top;
			const other = top.others[top.next++];
			if (other) {
				if ('done' in other && other.done) continue;
				if (!index.has(other)) enter(other);
				else if (isOpen.has(other)) low.set(node, Math.min(low.get(node)!, index.get(other)!));
				continue;
			}
			stack.pop();
			const above = stack.at(-1)?.node;
			if (above) low.set(above, Math.min(low.get(above)!, low.get(node)!));
			if (low.get(node) !== index.get(node)) continue;
			const members = open.splice(open.lastIndexOf(node));
			for (const member of members) {
				isOpen.delete(member);
				if (members.length > 1 && 'text' in member) found.push(member);
			}
		}
	}
	return found;
}
