import type { Packet } from '../codec/packet.ts';
import type { PacketName } from '../packets.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';

/** What a server does with a packet. */
export type PacketHandler = (from: ServerConnection, packet: Packet, server: ServerState) => void;

/** Some of the packet types, with what a server does with each. */
export type PacketHandlers = { readonly [N in PacketName]?: PacketHandler };
