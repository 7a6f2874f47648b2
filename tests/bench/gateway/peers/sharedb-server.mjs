/* sharedb-server.mjs - ShareDB as its documentation sets it up: a database and messages in memory, JSON over `ws`. */
import ShareDB from 'sharedb';
import WebSocketJSONStream from '@teamwork/websocket-json-stream';
import { listen } from './listen.mjs';

const backend = new ShareDB();
listen().on('connection', (ws) => backend.listen(new WebSocketJSONStream(ws)));
