import type { Packet } from '../codec/packet.ts';
import type { Journal } from '../journal/journal.ts';
import type { PacketName } from '../packets.ts';
import type { AccessRight } from './access-list.ts';
import type { JobQueue } from './job-queue.ts';
import type { ServerJob } from './queue-model.ts';
import type { ServerConnection } from './server-connection.ts';

/** State of the server, for the handlers of packets and admin commands. */
export interface ServerState {
  readonly queue: JobQueue;
  /** Journal of background jobs. Undefined if they are kept only in memory. */
  readonly journal: Journal | undefined;
  readonly connections: ReadonlySet<ServerConnection>;
  /** Returns whether the peer has the right to a function; logs a denial. */
  readonly permits: (from: ServerConnection, right: AccessRight, functionName: string) => boolean;
  /** Handles the command `shutdown`. Undefined if the command is not supported. */
  readonly onShutdown: ((graceful: boolean) => void) | undefined;
  /** Called for a job that `cancel job` ends. Returns the text of a warning to its clients; undefined for none. */
  readonly onCancel: (job: ServerJob) => string | undefined;
}

/**
 * Handles a packet. It parses numbers before it changes anything: if it throws a `ProtocolError`, the packet has no
 * effect, and the peer gets an ERROR.
 */
export type PacketHandler = (from: ServerConnection, packet: Packet, server: ServerState) => void;

/** Handlers by packet type. */
export type PacketHandlers = { readonly [N in PacketName]?: PacketHandler };
