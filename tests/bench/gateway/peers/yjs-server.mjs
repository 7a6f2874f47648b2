/*
 * yjs-server.mjs - the server that y-websocket brings (setupWSConnection, its documented entry), on the same `ws` as the other
 * peers. Documents are in memory; with YPERSISTENCE=DIR it also hands each update to y-leveldb.
 */
import utils from 'y-websocket/bin/utils';
import { listen } from './listen.mjs';

listen().on('connection', (ws, request) => utils.setupWSConnection(ws, request));
