/**
 * The binary protocol as a table, from gearmand's PROTOCOL document; `aggregator` is from gearmand's argument table.
 * The types, the encoder, the decoder and the documentation are derived from it: a new packet type is one row.
 */

/** Sender of a packet. A server's packets have the magic `\0RES`, all others `\0REQ`. */
export type Sender = 'client' | 'worker' | 'server';

/** Every packet type: its number, its permitted senders, and its arguments in wire order, separated by one NUL. */
export const PACKETS = {
  CAN_DO: { number: 1, senders: ['worker'], arguments: ['function'] },
  CANT_DO: { number: 2, senders: ['worker'], arguments: ['function'] },
  RESET_ABILITIES: { number: 3, senders: ['worker'], arguments: [] },
  PRE_SLEEP: { number: 4, senders: ['worker'], arguments: [] },
  NOOP: { number: 6, senders: ['server'], arguments: [] },
  SUBMIT_JOB: { number: 7, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  JOB_CREATED: { number: 8, senders: ['server'], arguments: ['handle'] },
  GRAB_JOB: { number: 9, senders: ['worker'], arguments: [] },
  NO_JOB: { number: 10, senders: ['server'], arguments: [] },
  JOB_ASSIGN: { number: 11, senders: ['server'], arguments: ['handle', 'function', 'data'] },
  WORK_STATUS: {
    number: 12,
    senders: ['worker', 'server'],
    arguments: ['handle', 'numerator', 'denominator'],
  },
  WORK_COMPLETE: { number: 13, senders: ['worker', 'server'], arguments: ['handle', 'data'] },
  WORK_FAIL: { number: 14, senders: ['worker', 'server'], arguments: ['handle'] },
  GET_STATUS: { number: 15, senders: ['client'], arguments: ['handle'] },
  ECHO_REQ: { number: 16, senders: ['client', 'worker'], arguments: ['data'] },
  ECHO_RES: { number: 17, senders: ['server'], arguments: ['data'] },
  SUBMIT_JOB_BG: { number: 18, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  ERROR: { number: 19, senders: ['server'], arguments: ['code', 'text'] },
  STATUS_RES: {
    number: 20,
    senders: ['server'],
    arguments: ['handle', 'known', 'running', 'numerator', 'denominator'],
  },
  SUBMIT_JOB_HIGH: { number: 21, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  SET_CLIENT_ID: { number: 22, senders: ['worker'], arguments: ['clientId'] },
  CAN_DO_TIMEOUT: { number: 23, senders: ['worker'], arguments: ['function', 'timeout'] },
  ALL_YOURS: { number: 24, senders: ['worker'], arguments: [] },
  WORK_EXCEPTION: { number: 25, senders: ['worker', 'server'], arguments: ['handle', 'data'] },
  OPTION_REQ: { number: 26, senders: ['client', 'worker'], arguments: ['option'] },
  OPTION_RES: { number: 27, senders: ['server'], arguments: ['option'] },
  WORK_DATA: { number: 28, senders: ['worker', 'server'], arguments: ['handle', 'data'] },
  WORK_WARNING: { number: 29, senders: ['worker', 'server'], arguments: ['handle', 'data'] },
  GRAB_JOB_UNIQ: { number: 30, senders: ['worker'], arguments: [] },
  JOB_ASSIGN_UNIQ: { number: 31, senders: ['server'], arguments: ['handle', 'function', 'unique', 'data'] },
  SUBMIT_JOB_HIGH_BG: { number: 32, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  SUBMIT_JOB_LOW: { number: 33, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  SUBMIT_JOB_LOW_BG: { number: 34, senders: ['client'], arguments: ['function', 'unique', 'data'] },
  SUBMIT_JOB_SCHED: {
    number: 35,
    senders: ['client'],
    arguments: ['function', 'unique', 'minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek', 'data'],
  },
  SUBMIT_JOB_EPOCH: { number: 36, senders: ['client'], arguments: ['function', 'unique', 'epoch', 'data'] },
  SUBMIT_REDUCE_JOB: {
    number: 37,
    senders: ['client'],
    arguments: ['function', 'unique', 'reducer', 'aggregator', 'data'],
  },
  SUBMIT_REDUCE_JOB_BACKGROUND: {
    number: 38,
    senders: ['client'],
    arguments: ['function', 'unique', 'reducer', 'aggregator', 'data'],
  },
  GRAB_JOB_ALL: { number: 39, senders: ['worker'], arguments: [] },
  JOB_ASSIGN_ALL: {
    number: 40,
    senders: ['server'],
    arguments: ['handle', 'function', 'unique', 'reducer', 'data'],
  },
  GET_STATUS_UNIQUE: { number: 41, senders: ['client'], arguments: ['unique'] },
  STATUS_RES_UNIQUE: {
    number: 42,
    senders: ['server'],
    arguments: ['unique', 'known', 'running', 'numerator', 'denominator', 'clients'],
  },
} as const;

/** Name of a packet type, as in gearmand's PROTOCOL document. */
export type PacketName = keyof typeof PACKETS;

/** Name of an argument. */
export type ArgumentName = (typeof PACKETS)[PacketName]['arguments'][number];

/** Value of an argument. A string is sent as UTF-8, a number in decimal. */
export type ArgumentValue = string | number | Uint8Array;

/** The arguments of packet type `N` as a tuple. */
export type ArgumentValues<N extends PacketName> = ValueForEach<(typeof PACKETS)[N]['arguments']>;

type ValueForEach<T extends readonly unknown[]> = { -readonly [I in keyof T]: ArgumentValue };

/** A row of the table, with the properties derived from it. */
export interface PacketType {
  readonly name: PacketName;
  readonly number: number;
  readonly senders: readonly Sender[];
  readonly arguments: readonly ArgumentName[];
  /** True if the last argument is a payload, which may contain NULs. All other arguments are text. */
  readonly hasPayload: boolean;
  /** True if a missing NUL before the payload means an empty payload, as in the WORK_* packets of Perl's workers. */
  readonly mayLackPayload: boolean;
}

/** Packet types by number; undefined for unused numbers. */
export const PACKET_TYPES: readonly (PacketType | undefined)[] = numbered();

function numbered(): (PacketType | undefined)[] {
  const types: (PacketType | undefined)[] = Array.from({ length: 43 });
  for (const [name, row] of Object.entries(PACKETS)) {
    const last = (row.arguments as readonly ArgumentName[]).at(-1);
    const hasPayload = last === 'data';
    const mayLackPayload = hasPayload && name.startsWith('WORK_');
    types[row.number] = { name: name as PacketName, ...row, hasPayload, mayLackPayload };
  }
  return types;
}
