/**
 * Entry `@nodepool-builder/gearman-node/admin`. A program that only queries job servers loads no client, worker or
 * server.
 */
export { Admin, type AdminOptions } from './admin/admin.ts';
export type { FunctionStatus } from './admin/admin-commands.ts';
export { formatAddress, type ServerAddress } from './connection/server-address.ts';
export { ConnectionError } from './errors.ts';
