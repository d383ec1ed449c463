import type { Packet } from '../codec/packet.ts';
import type { Journal } from '../journal/journal.ts';
import type { PacketName } from '../packets.ts';
import type { AccessRight } from './access-list.ts';
import type { JobQueue } from './job-queue.ts';
import type { JobTimers } from './job-timers.ts';
import type { ServerConnection } from './server-connection.ts';

/** What the handlers of packets and admin commands work on. */
export interface ServerState {
  readonly queue: JobQueue<ServerConnection>;
  readonly timers: JobTimers;
  /** Undefined where background jobs live in memory alone. */
  readonly journal: Journal | undefined;
  readonly connections: ReadonlySet<ServerConnection>;
  /** Whether the peer has the right to a function; a refusal is logged. */
  readonly permits: (from: ServerConnection, right: AccessRight, functionName: string) => boolean;
  /** Undefined where nobody may shut the server down. */
  readonly onShutdown: ((graceful: boolean) => void) | undefined;
}

/**
 * What a server does with a packet. It reads the numbers of one before it does anything: when it throws `ProtocolError`,
 * the peer is told, and the packet has done nothing.
 */
export type PacketHandler = (from: ServerConnection, packet: Packet, server: ServerState) => void;

/** Some of the packet types, with what a server does with each. */
export type PacketHandlers = { readonly [N in PacketName]?: PacketHandler };
