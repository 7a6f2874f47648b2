// index.ts - what the npm package exports (clients/js). The page imports the modules themselves.

export { type ClientOptions, type Operation, type Outbox, RefusedError, SheetClient, type Socket } from './client';
export { type Cell, type CellStore, Replica } from './replica';
export * from './messages';
