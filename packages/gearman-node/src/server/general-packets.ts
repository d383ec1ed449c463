import type { PacketHandlers } from './packet-handler.ts';

/** Characters of a client id that are kept, as for gearmand. */
const MAX_CLIENT_ID_LENGTH = 127;

/** What a server does with the packets that say nothing of jobs. */
export const GENERAL_PACKETS: PacketHandlers = {
  ECHO_REQ: (from, packet) => from.send('ECHO_RES', packet.bytes('data')),
  OPTION_REQ: (from, packet) => {
    if (packet.key('option') === 'exceptions') {
      from.wantsExceptions = true;
      from.send('OPTION_RES', 'exceptions');
    } else {
      from.send('ERROR', 'UNKNOWN_OPTION', 'Server does not recognize given option');
    }
  },
  SET_CLIENT_ID: (from, packet) => {
    from.clientId = packet.key('clientId').slice(0, MAX_CLIENT_ID_LENGTH) || '-';
  },
};
