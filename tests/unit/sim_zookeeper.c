/*
 * sim_zookeeper.c - three ZooKeeper servers and the network to them; see sim.h. Their clients' end is in
 * sim_libzookeeper.c.
 *
 * What is modelled, from ZooKeeper 3.8:
 *
 *   A write goes from the client to its server, to the leader, which proposes it, and is committed later. Each server
 *   applies committed writes in their order, at times of its own; then the client's server answers.
 *   A server answers a client's requests in their order. A read sees what this server has applied, perhaps not the
 *   newest state. `sync` waits for all that the leader has proposed.
 *   The leader refuses the writes of a session that has moved to another server (PrepRequestProcessor.checkSession),
 * but what it has proposed before the session moved is committed, after the client has lost that connection. The leader
 * ends a session that it has not heard of for the session time, and removes its nodes. When the leader is lost, all
 * servers close their connections; of the proposals that were not committed some survive. Watches fire once, in order
 * with the answers; a client sets them again when it has connected again.
 */
#include "sim_zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Server servers[SIM_SERVERS];
static Tree proposed; /* with all that the leader has proposed */
static Transaction **history;
static int history_count, history_room, committed;
static uint64_t commits; /* when the last proposal is committed */
static unsigned epoch;
static bool has_leader;
static int leader;
static Session sessions[SESSIONS_MAX];
static int session_count;
static Connection *connections;
static uint64_t cut_to_server[PROCESSES_MAX][SIM_SERVERS], cut_to_client[PROCESSES_MAX][SIM_SERVERS];
static uint64_t disk_delay, disk_until;

/* ---- memory of the world, freed at its end ---- */

static void **kept;
static size_t kept_count, kept_room;

void *
keep(size_t size)
{
	if (kept_count == kept_room)
	{
		kept_room = kept_room ? 2 * kept_room : 1024;
		kept = realloc(kept, kept_room * sizeof(*kept));
	}
	return kept[kept_count++] = calloc(1, size);
}

/* ---- trees ---- */

static Node *
tree_find(const Tree *tree, const char *path)
{
	for (int i = 0; i < tree->count; i++)
		if (strcmp(tree->nodes[i].path, path) == 0)
			return &tree->nodes[i];
	return NULL;
}

static void
parent_of(const char *path, char to[PATH_SIZE])
{
	size_t len = (size_t) (strrchr(path, '/') - path);

	memcpy(to, path, len);
	to[len] = '\0';
}

static bool
is_child(const char *path, const char *parent)
{
	size_t len = strlen(parent);

	return strncmp(path, parent, len) == 0 && path[len] == '/' && !strchr(path + len + 1, '/');
}

static int
tree_children(const Tree *tree, const char *parent, char (*to)[PATH_SIZE])
{
	int count = 0;

	for (int i = 0; i < tree->count; i++)
		if (is_child(tree->nodes[i].path, parent))
		{
			if (to)
				strcpy(to[count], tree->nodes[i].path + strlen(parent) + 1);
			count++;
		}
	return count;
}

/* May the change be made now? Gives a sequential node its name. */
static int
tree_check(Tree *tree, Change *change)
{
	Node *node = tree_find(tree, change->path), *parent;
	char above[PATH_SIZE];

	if (node && (change->kind == SET || change->kind == CHECK) && change->version != node->version)
		return ZBADVERSION;
	if (change->kind != CREATE)
		return !node ? ZNONODE : change->kind == DELETE && tree_children(tree, change->path, NULL) ? ZNOTEMPTY : ZOK;
	parent_of(change->path, above);
	parent = tree_find(tree, above);
	if (above[0] && !parent)
		return ZNONODE;
	if (parent && parent->session)
		return ZNOCHILDRENFOREPHEMERALS;
	if (change->flags == ZOO_EPHEMERAL_SEQUENTIAL)
		sprintf(change->path + strlen(change->path), "%010d", parent->sequence++);
	else if (node)
		return ZNODEEXISTS;
	return ZOK;
}

static void
tree_touch_parent(Tree *tree, const char *path, int64_t zxid, bool created)
{
	char above[PATH_SIZE];
	Node *parent;

	parent_of(path, above);
	parent = tree_find(tree, above);
	if (!parent)
		return;
	parent->pzxid = zxid;
	if (created && parent->sequence <= (int) (strlen(path) > 10 ? strtol(path + strlen(path) - 10, NULL, 10) : 0))
		parent->sequence = (int) strtol(path + strlen(path) - 10, NULL, 10) + 1;
}

static void
tree_apply(Tree *tree, const Change *change, int64_t session, int64_t zxid)
{
	static const char *const kinds[] = {"create", "delete", "set"};
	Node *node = tree_find(tree, change->path);

	if (change->kind == CHECK)
		return;
	if (tree == &proposed)
		sim_trace("zxid %lld session %lld: %s %s", (long long) zxid, (long long) session, kinds[change->kind],
				  change->path);

	if (change->kind == CREATE)
	{
		if (tree->count == tree->room)
			tree->nodes = realloc(tree->nodes, (size_t) (tree->room += 64) * sizeof(Node));
		node = &tree->nodes[tree->count++];
		*node = (Node){.czxid = zxid, .mzxid = zxid, .pzxid = zxid, .container = change->flags == ZOO_CONTAINER};
		node->session = change->flags & ZOO_EPHEMERAL ? session : 0;
		strcpy(node->path, change->path);
		strcpy(node->data, change->data);
		tree_touch_parent(tree, change->path, zxid, change->flags == ZOO_EPHEMERAL_SEQUENTIAL);
	}
	else if (change->kind == SET)
	{
		strcpy(node->data, change->data);
		node->mzxid = zxid;
		node->version++;
	}
	else
	{
		tree_touch_parent(tree, change->path, zxid, false);
		*node = tree->nodes[--tree->count];
	}
}

static void
tree_copy(Tree *to, const Tree *from)
{
	free(to->nodes);
	*to = *from;
	to->nodes = malloc((size_t) (to->room + 1) * sizeof(Node));
	memcpy(to->nodes, from->nodes, (size_t) from->count * sizeof(Node));
}

/* ---- the network ---- */

static uint64_t
link_delay(void)
{
	return sim_random(sim_is_slow(3) ? 200 * SIM_MS : 2 * SIM_MS) + 50;
}

/* When a message that is sent now arrives: after the one before it, and not while the link is cut (TCP sends again). */
static uint64_t
arrival(uint64_t *last, uint64_t cut_until)
{
	uint64_t at = (cut_until > sim_now ? cut_until : sim_now) + link_delay();

	*last = at > *last ? at : *last;
	return *last - sim_now;
}

static void server_gets(void *arg);

static void
send_to_client(Connection *connection, Request *request, int event, const char *path)
{
	Message *message;

	if (!connection->open || connection->process->dead)
		return;
	message = keep(sizeof(*message));
	*message = (Message){connection, request, event, "", servers[connection->number].tree.zxid};
	strcpy(message->path, path);
	sim_after(connection->process,
			  arrival(&connection->to_client, cut_to_client[connection->process->number][connection->number]),
			  client_gets, message);
}

void
connection_add(Connection *connection)
{
	connection->next = connections;
	connections = connection;
}

/* quietly: the client is not told, as when a host fails. */
static void
server_closes(Connection *connection, bool quietly)
{
	if (!quietly)
		send_to_client(connection, NULL, 0, "");
	connection->open = false;
}

static void
server_loses_client(void *arg)
{
	((Connection *) arg)->open = false;
}

void
send_to_server(Request *request)
{
	Connection *connection = request->connection;

	if (!connection->process->dead)
		sim_after(&servers[connection->number].process,
				  arrival(&connection->to_server, cut_to_server[connection->process->number][connection->number]),
				  server_gets, request);
}

void
send_end_to_server(Connection *connection)
{
	if (!connection->process->dead)
		sim_after(&servers[connection->number].process,
				  arrival(&connection->to_server, cut_to_server[connection->process->number][connection->number]),
				  server_loses_client, connection);
}

/* ---- the leader ---- */

static void apply_next(void *arg);
static void server_answers(int number, Request *request);

static void
on_committed(void *arg)
{
	unsigned of = (unsigned) (uintptr_t) arg;

	if (of != epoch || !has_leader)
		return;
	committed++;
	for (int i = 0; i < SIM_SERVERS; i++)
	{
		uint64_t at = sim_now + sim_random(sim_is_slow(3) ? 400 * SIM_MS : 2 * SIM_MS);

		servers[i].applies = at > servers[i].applies ? at : servers[i].applies;
		sim_after(&servers[i].process, servers[i].applies - sim_now, apply_next, &servers[i]);
	}
}

static Transaction *
propose(void)
{
	Transaction *transaction = keep(sizeof(*transaction));
	uint64_t at = sim_now + sim_random(3 * SIM_MS) + (sim_now < disk_until ? disk_delay : 0);

	if (history_count == history_room)
		history = realloc(history, (size_t) (history_room += 1024) * sizeof(*history));
	history[history_count++] = transaction;
	commits = at > commits ? at : commits;
	sim_after(NULL, commits - sim_now, on_committed, (void *) (uintptr_t) epoch);
	return transaction;
}

static int64_t
zxid_of(int transaction)
{
	return transaction + 1;
}

/* Removes the nodes of a session from a tree, and tells the watches of a server. */
static void tree_end_session(Tree *tree, int server, int64_t session, int64_t zxid);

static void
propose_end(int64_t session, Request *request, int server)
{
	Transaction *transaction = propose();

	sessions[session].ended = true;
	transaction->ended = session;
	transaction->request = request;
	transaction->server = server;
	tree_end_session(&proposed, -1, session, zxid_of(history_count - 1));
}

static void
propose_change(ChangeKind kind, const char *path)
{
	Transaction *transaction = propose();

	transaction->change_count = 1;
	transaction->changes[0].kind = kind;
	strcpy(transaction->changes[0].path, path);
	tree_apply(&proposed, &transaction->changes[0], 0, zxid_of(history_count - 1));
}

static void
propose_request(Request *request, int server)
{
	Session *session = &sessions[request->session];
	Transaction *transaction;
	int rc = ZOK;

	if (session->ended)
		rc = ZSESSIONEXPIRED;
	else if (session->server != -1 && session->server != server)
		rc = ZSESSIONMOVED;
	else
		session->server = server;
	if (rc == ZOK && request->kind == END_SESSION)
	{
		propose_end(request->session, request, server);
		return;
	}
	for (int i = 0; rc == ZOK && i < request->change_count; i++)
		rc = tree_check(&proposed, &request->changes[i]);
	transaction = propose();
	transaction->request = request;
	transaction->server = server;
	transaction->rc = rc;
	for (int i = 0; rc == ZOK && i < request->change_count; i++)
	{
		transaction->changes[i] = request->changes[i];
		transaction->change_count++;
		tree_apply(&proposed, &request->changes[i], request->session, zxid_of(history_count - 1));
	}
}

static void
leader_gets(void *arg)
{
	Request *request = arg;

	if (has_leader && request->epoch == epoch)
		propose_request(request, request->connection->number);
}

static void
leader_hears(void *arg)
{
	Session *session = arg;

	if (has_leader && sim_now + session->timeout > session->ends)
		session->ends = sim_now + session->timeout;
}

static void
leader_expires(void *arg)
{
	sim_after(NULL, 100 * SIM_MS, leader_expires, NULL);
	for (int i = 1; has_leader && i <= session_count; i++)
		if (!sessions[i].ended && sessions[i].ends < sim_now)
			propose_end(i, NULL, -1);
}

static void
leader_removes_containers(void *arg)
{
	sim_after(NULL, 3000 * SIM_MS, leader_removes_containers, NULL);
	for (int i = 0; has_leader && i < proposed.count; i++)
		if (proposed.nodes[i].container && proposed.nodes[i].sequence > 0 && sim_percent(30) &&
			tree_children(&proposed, proposed.nodes[i].path, NULL) == 0)
		{
			char path[PATH_SIZE];

			strcpy(path, proposed.nodes[i].path);
			propose_change(DELETE, path);
		}
}

static void
to_leader(int number, SimFn fn, void *arg)
{
	Server *server = &servers[number];
	uint64_t at = sim_now + sim_random(SIM_MS);

	server->to_leader = at > server->to_leader ? at : server->to_leader;
	sim_after(NULL, server->to_leader - sim_now, fn, arg);
}

/* ---- a server ---- */

void
watch_add(Watch **list, const char *path, bool child)
{
	Watch *watch;

	for (watch = *list; watch; watch = watch->next)
		if (watch->child == child && strcmp(watch->path, path) == 0)
			return;
	watch = keep(sizeof(*watch));
	strcpy(watch->path, path);
	watch->child = child;
	watch->next = *list;
	*list = watch;
}

bool
watch_take(Watch **list, const char *path, bool child)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->child == child && strcmp((*list)->path, path) == 0)
		{
			*list = (*list)->next;
			return true;
		}
	return false;
}

static void
fire(int number, const char *path, bool child, int event)
{
	for (Connection *c = connections; c; c = c->next)
		if (c->open && c->number == number && watch_take(&c->watches, path, child))
			send_to_client(c, NULL, event, path);
}

static void
fire_change(int number, const Change *change)
{
	char above[PATH_SIZE];

	if (change->kind == CHECK)
		return;
	parent_of(change->path, above);
	if (change->kind != CREATE)
		fire(number, change->path, false, change->kind == SET ? ZOO_CHANGED_EVENT : ZOO_DELETED_EVENT);
	if (change->kind == DELETE)
		fire(number, change->path, true, ZOO_DELETED_EVENT);
	if (change->kind != SET)
		fire(number, above, true, ZOO_CHILD_EVENT);
}

static void
tree_end_session(Tree *tree, int server, int64_t session, int64_t zxid)
{
	for (int i = tree->count - 1; i >= 0; i--)
		if (tree->nodes[i].session == session)
		{
			Change change = {.kind = DELETE};

			strcpy(change.path, tree->nodes[i].path);
			tree_apply(tree, &change, session, zxid);
			if (server >= 0)
				fire_change(server, &change);
		}
}

/* Answers the reads at the head of a session's queue, and sends on the write behind them. */
static void
server_goes_on(int number, int64_t session)
{
	Request **first = &servers[number].first[session];

	while (*first)
	{
		Request *request = *first;

		if (request->kind <= SYNC)
		{
			if (!request->forwarded)
			{
				request->forwarded = true;
				request->epoch = epoch;
				to_leader(number, leader_gets, request);
			}
			return;
		}
		*first = request->after;
		server_answers(number, request);
	}
}

static void
apply(Server *server, const Transaction *transaction)
{
	int number = (int) (server - servers);
	Request *request = transaction->request;
	int64_t zxid = zxid_of(server->applied);

	server->applied++;
	for (int i = 0; i < transaction->change_count; i++)
	{
		tree_apply(&server->tree, &transaction->changes[i], request ? request->session : 0, zxid);
		fire_change(number, &transaction->changes[i]);
	}
	if (transaction->ended)
		tree_end_session(&server->tree, number, transaction->ended, zxid);
	server->tree.zxid = zxid;
	if (request && transaction->server == number && server->first[request->session] == request)
	{
		Node *node = transaction->change_count ? tree_find(&server->tree, transaction->changes[0].path) : NULL;

		request->answer.rc = transaction->rc;
		if (node)
			request->answer.node = *node;
		server->first[request->session] = request->after;
		send_to_client(request->connection, request, 0, "");
		server_goes_on(number, request->session);
	}
	for (Connection *c = connections; transaction->ended && c; c = c->next)
		if (c->number == number && c->session == transaction->ended)
			server_closes(c, false);
}

static void
apply_next(void *arg)
{
	Server *server = arg;

	if (!server->down && has_leader && server->applied < committed)
		apply(server, history[server->applied]);
}

static void
server_answers(int number, Request *request)
{
	const Tree *tree = &servers[number].tree;
	const Node *node = tree_find(tree, request->path);
	Answer *answer = &request->answer;

	answer->rc = node || request->kind == EXISTS ? ZOK : ZNONODE;
	if (node)
		answer->node = *node;
	if (node && request->kind == CHILDREN)
	{
		answer->child_count = tree_children(tree, request->path, NULL);
		answer->children = keep((size_t) (answer->child_count + 1) * PATH_SIZE);
		tree_children(tree, request->path, answer->children);
	}
	if (node && request->watch && request->connection->open)
		watch_add(&request->connection->watches, request->path, request->kind == CHILDREN);
	send_to_client(request->connection, request, 0, "");
}

/* The watches that a client had before it was connected here; what has changed since then is told at once. */
static void
server_sets_watches(Connection *connection, int64_t since)
{
	const Tree *tree = &servers[connection->number].tree;

	for (const Watch *watch = connection->handle ? connection->handle->watches : NULL; watch; watch = watch->next)
	{
		const Node *node = tree_find(tree, watch->path);

		if (!node)
			send_to_client(connection, NULL, ZOO_DELETED_EVENT, watch->path);
		else if ((watch->child ? node->pzxid : node->mzxid) > since)
			send_to_client(connection, NULL, watch->child ? ZOO_CHILD_EVENT : ZOO_CHANGED_EVENT, watch->path);
		else
			watch_add(&connection->watches, watch->path, watch->child);
	}
}

static void
server_connects(void *arg)
{
	Request *request = arg;
	Connection *connection = request->connection;

	if (!connection->open)
		return;
	send_to_client(connection, request, 0, "");
	if (request->answer.rc == ZOK)
		server_sets_watches(connection, request->zxid);
}

static void
leader_connects(void *arg)
{
	Request *request = arg;
	Session *session;

	if (!has_leader || request->epoch != epoch)
		return;
	if (request->session == 0)
	{
		request->session = ++session_count;
		sessions[session_count].timeout = (uint64_t) request->timeout * SIM_MS;
	}
	session = &sessions[request->session];
	request->answer.rc = session->ended ? ZSESSIONEXPIRED : ZOK;
	request->answer.session = request->connection->session = request->session;
	session->server = request->connection->number;
	session->ends = sim_now + session->timeout;
	sim_after(&servers[request->connection->number].process, sim_random(2 * SIM_MS), server_connects, request);
}

static void
server_gets(void *arg)
{
	Request *request = arg;
	Connection *connection = request->connection;
	Server *server = &servers[connection->number];
	Request **end;

	if (!connection->open || server->down)
		return;
	if (!has_leader || (request->kind == CONNECT && (request->zxid > server->tree.zxid || !connection->handle)))
	{
		server_closes(connection, false);
		return;
	}
	if (request->kind == CONNECT)
	{
		request->epoch = epoch;
		to_leader(connection->number, leader_connects, request);
		return;
	}
	to_leader(connection->number, leader_hears, &sessions[request->session]);
	if (request->kind == PING)
	{
		send_to_client(connection, request, 0, "");
		return;
	}
	for (end = &server->first[request->session]; *end; end = &(*end)->after)
		;
	*end = request;
	if (server->first[request->session] == request)
		server_goes_on(connection->number, request->session);
}

static void
server_closes_all(int number, bool quietly)
{
	for (Connection *c = connections; c; c = c->next)
		if (c->number == number && c->open)
			server_closes(c, quietly);
	memset(servers[number].first, 0, sizeof(servers[number].first));
}

static void
server_catches_up(int number)
{
	while (servers[number].applied < committed)
		apply(&servers[number], history[servers[number].applied]);
}

/* ---- faults of servers ---- */

static int
servers_that_run(void)
{
	int count = 0;

	for (int i = 0; i < SIM_SERVERS; i++)
		count += !servers[i].down && !servers[i].process.stopped;
	return count;
}

static void
elect(void *arg)
{
	if (has_leader || (unsigned) (uintptr_t) arg != epoch)
		return;
	if (2 * servers_that_run() <= SIM_SERVERS)
	{
		sim_after(NULL, 200 * SIM_MS, elect, arg);
		return;
	}
	/* of what was proposed, some was known to a majority */
	if (committed < history_count)
		committed += (int) sim_random((uint32_t) (history_count - committed + 1));
	history_count = committed;
	for (leader = (int) sim_random(SIM_SERVERS); servers[leader].down || servers[leader].process.stopped;)
		leader = (leader + 1) % SIM_SERVERS;
	for (int i = 0; i < SIM_SERVERS; i++)
		if (!servers[i].down && !servers[i].process.stopped)
			server_catches_up(i);
	tree_copy(&proposed, &servers[leader].tree);
	for (int i = 1; i <= session_count; i++)
	{
		bool ended = false;

		for (int j = 0; j < history_count; j++)
			ended = ended || history[j]->ended == i;
		sessions[i] = (Session){-1, ended, sessions[i].timeout, sim_now + sessions[i].timeout};
	}
	commits = sim_now;
	has_leader = true;
	sim_trace("server %d leads, up to zxid %d", leader, committed);
}

void
sim_lose_leader(void)
{
	if (!has_leader)
		return;
	sim_trace("the leader is lost");
	has_leader = false;
	epoch++;
	for (int i = 0; i < SIM_SERVERS; i++)
		server_closes_all(i, false);
	sim_after(NULL, (200 + sim_random(1300)) * SIM_MS, elect, (void *) (uintptr_t) epoch);
}

static void
check_quorum(int lost)
{
	if (lost == leader || 2 * servers_that_run() <= SIM_SERVERS)
		sim_lose_leader();
}

static void
server_starts(void *arg)
{
	Server *server = arg;

	server->down = false;
	server_catches_up((int) (server - servers));
}

void
sim_crash_server(int number, uint64_t duration)
{
	if (servers[number].down || servers[number].process.stopped)
		return;
	sim_trace("server %d crashes for %llu ms", number, (unsigned long long) duration / SIM_MS);
	server_closes_all(number, sim_percent(30));
	servers[number].down = true;
	check_quorum(number);
	sim_after(NULL, duration, server_starts, &servers[number]);
}

static void
server_continues(void *arg)
{
	Server *server = arg;

	if (sim_now - server->hangs_since > 1000 * SIM_MS)
		server_closes_all((int) (server - servers), false);
	sim_continue(&server->process);
	server_catches_up((int) (server - servers));
}

void
sim_hang_server(int number, uint64_t duration)
{
	if (servers[number].down || servers[number].process.stopped)
		return;
	sim_trace("server %d hangs for %llu ms", number, (unsigned long long) duration / SIM_MS);
	servers[number].process.stopped = true;
	servers[number].hangs_since = sim_now;
	check_quorum(number);
	sim_after(NULL, duration, server_continues, &servers[number]);
}

int
sim_follower(void)
{
	return (leader + 1 + (int) sim_random(SIM_SERVERS - 1)) % SIM_SERVERS;
}

void
sim_slow_disk(uint64_t delay, uint64_t duration)
{
	sim_trace("the disk takes %llu ms", (unsigned long long) delay / SIM_MS);
	disk_delay = delay;
	disk_until = sim_now + duration;
}

void
sim_cut_link(SimProcess *process, int server, bool to_server, bool to_client, uint64_t duration)
{
	sim_trace("gateway %d - server %d cut for %llu ms", process->number, server,
			  (unsigned long long) duration / SIM_MS);
	if (to_server)
		cut_to_server[process->number][server] = sim_now + duration;
	if (to_client)
		cut_to_client[process->number][server] = sim_now + duration;
}

void
sim_kill(SimProcess *process)
{
	process->dead = true;
	for (Connection *c = connections; c; c = c->next)
		if (c->process == process && c->open)
			sim_after(&servers[c->number].process, link_delay(), server_loses_client, c);
}

static bool
is_lock_node(const Node *node)
{
	return strstr(node->path, "-lock-") || strstr(node->path, "-__lock__");
}

int64_t
sim_remove_lock_nodes(bool both)
{
	char path[PATH_SIZE], other[PATH_SIZE] = "";
	int64_t czxid = 0;
	int count = 0;

	for (int i = 0; has_leader && i < proposed.count; i++)
		if (is_lock_node(&proposed.nodes[i]) && sim_random((uint32_t) ++count) == 0)
		{
			strcpy(path, proposed.nodes[i].path);
			czxid = proposed.nodes[i].czxid;
		}
	if (count == 0)
		return 0;
	for (int i = 0; i < proposed.count; i++)
		if (is_lock_node(&proposed.nodes[i]) && proposed.nodes[i].czxid == czxid &&
			strcmp(proposed.nodes[i].path, path) != 0)
			strcpy(other, proposed.nodes[i].path);
	propose_change(DELETE, path);
	if (both && other[0])
		propose_change(DELETE, other);
	return both || !other[0] ? czxid : 0;
}

void
sim_zookeeper_heal(void)
{
	memset(cut_to_server, 0, sizeof(cut_to_server));
	memset(cut_to_client, 0, sizeof(cut_to_client));
	disk_until = 0;
	for (int i = 0; i < SIM_SERVERS; i++)
	{
		if (servers[i].down)
			server_starts(&servers[i]);
		if (servers[i].process.stopped)
			server_continues(&servers[i]);
	}
}

void
sim_each_node(void (*fn)(void *arg, const char *path, int64_t session, int64_t czxid, const char *data), void *arg)
{
	const Tree *tree = &servers[leader].tree;

	for (int i = 0; i < tree->count; i++)
		fn(arg, tree->nodes[i].path, tree->nodes[i].session, tree->nodes[i].czxid, tree->nodes[i].data);
}

void
sim_zookeeper_begin(void)
{
	memset(servers, 0, sizeof(servers));
	memset(sessions, 0, sizeof(sessions));
	proposed = (Tree){NULL, 0, 0, 0};
	history_count = committed = session_count = 0;
	commits = disk_until = 0;
	epoch = 1;
	has_leader = true;
	leader = 0;
	connections = NULL;
	memset(cut_to_server, 0, sizeof(cut_to_server));
	memset(cut_to_client, 0, sizeof(cut_to_client));
	sim_after(NULL, 100 * SIM_MS, leader_expires, NULL);
	sim_after(NULL, 3000 * SIM_MS, leader_removes_containers, NULL);
}

void
sim_zookeeper_end(void)
{
	for (size_t i = 0; i < kept_count; i++)
		free(kept[i]);
	free(kept);
	free(history);
	free(proposed.nodes);
	for (int i = 0; i < SIM_SERVERS; i++)
		free(servers[i].tree.nodes);
	kept = NULL;
	history = NULL;
	kept_count = kept_room = 0;
	history_room = 0;
}
