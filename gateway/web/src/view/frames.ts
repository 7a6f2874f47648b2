// frames.ts - the animation frames in which Univer draws.
//
// Univer's engines ask for every frame, also when there is nothing to draw: a page that nobody touches takes a twentieth of a
// processor. A scene draws only if one of its layers is dirty. So an engine's loop ends here when its scene is not dirty, and
// begins when a layer becomes dirty.
import type { Injector } from '@univerjs/core';
import { type Engine, type IRender, IRenderManagerService, Layer } from '@univerjs/engine-render';

const loops = new WeakMap<Engine, () => void>();

const { makeDirty } = Layer.prototype;
Layer.prototype.makeDirty = function (state = true) {
	makeDirty.call(this, state);
	const engine = state ? this.scene.getEngine() : null;
	if (engine) loops.get(engine)?.();
	return this;
};

function drawWhenDirty({ engine, scene, activated$ }: IRender): void {
	let active = true;
	const draw = () => scene.render();
	activated$.subscribe((now) => (active = now));
	loops.set(engine, () => active && engine.runRenderLoop(draw));
	engine.beginFrame$.subscribe({
		next: () => scene.isDirty() || engine.stopRenderLoop(),
		complete: () => loops.delete(engine),
	});
}

/** Draws the scenes of all units when they are dirty, and calls `drawn` after those of one unit. Returns its end. */
export function drawFrames(injector: Injector, unitId: string, drawn: () => void): () => void {
	const add = (render: IRender) => {
		drawWhenDirty(render);
		if (render.unitId === unitId) render.scene.afterRender$.subscribe(drawn);
	};
	const renders = injector.get(IRenderManagerService);
	renders.getRenderAll().forEach(add);
	const created = renders.created$.subscribe(add);
	return () => created.unsubscribe();
}
