import type { Packet } from '../codec/packet.ts';
import type { PacketName } from '../packets.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';

/**
 * What a server does with a packet. It reads the numbers of one before it does anything: when it throws `ProtocolError`,
 * the peer is told, and the packet has done nothing.
 */
export type PacketHandler = (from: ServerConnection, packet: Packet, server: ServerState) => void;

/** Some of the packet types, with what a server does with each. */
export type PacketHandlers = { readonly [N in PacketName]?: PacketHandler };
