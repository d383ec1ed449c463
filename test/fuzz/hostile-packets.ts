import * as fc from 'fast-check';
import { type ArgumentName, PACKETS, type PacketName } from '../../packages/gearman-node/src/packets.ts';
import { BODY_MUTATIONS, FRAME_MUTATIONS, headerOf, type Mutation } from './mutations.ts';

/** One message of a hostile peer: a packet, a corrupted packet, or a line of text. */
export interface HostilePacket {
  /** Index of the connection. */
  readonly connection: number;
  /** Type before the corruption; `TEXT` for a line. */
  readonly name: PacketName | 'TEXT';
  readonly isMutated: boolean;
  /** True if it breaks the framing of later packets. */
  readonly breaksFraming: boolean;
  readonly bytes: Buffer;
}

/** Ingredients of hostile packets. */
export interface Vocabulary {
  readonly magic: 'REQ' | 'RES';
  readonly connections: number;
  readonly maxPackets: number;
  readonly handles: readonly string[];
  readonly functions: readonly string[];
  /** Lines of the admin text protocol, without line endings. */
  readonly lines: readonly string[];
}

/** Valid and invalid values: empty, not a number, not finite, too long, not UTF-8. */
const ODD_TEXTS: readonly Buffer[] = [
  '',
  '-1',
  'x',
  'Infinity',
  'y'.repeat(64),
  'z'.repeat(513),
  '\xff\xfe',
].map((text) => Buffer.from(text, 'latin1'));
const NUMBERS = ['0', '1', '2', '100', '4294967296', '9'.repeat(30)];
const UNIQUES = ['', '', 'u', 'v', '-'];
const PAYLOADS: readonly Buffer[] = [
  Buffer.from('a payload'),
  Buffer.from('another'),
  Buffer.alloc(100, 'of a hundred bytes'),
  Buffer.alloc(0),
  Buffer.from('payload'),
  Buffer.from('\0\0\0'),
  headerOf('\0RES', 13, 4),
  Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  Buffer.alloc(5000, 'long'),
  Buffer.alloc(70_000, 'longer'),
];

/** Weights of valid packets, packets with a corrupted body, and packets that break the framing. */
const WEIGHTS = { whole: 16, body: 14, frame: 1 } as const;

/**
 * Generates packet streams as a hostile peer would send them. Half of the packets make sense, so that they get far into
 * a state machine; half have a corrupted body. Few corrupt the framing, because that ends the connection.
 */
export function hostilePackets(vocabulary: Vocabulary): fc.Arbitrary<HostilePacket[]> {
  const names = Object.keys(PACKETS) as PacketName[];
  const ofSender = names.filter((name) =>
    PACKETS[name].senders.some((sender) => (sender === 'server') === (vocabulary.magic === 'RES')),
  );
  const values = valuesOf(vocabulary);
  const choice = fc.nat(0xffff_ffff);
  const packet = fc
    .tuple(
      fc.nat(vocabulary.connections - 1),
      fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...ofSender) }, fc.constantFrom(...names)),
      choice,
      fc.oneof(
        { weight: WEIGHTS.whole, arbitrary: fc.constant(undefined) },
        { weight: WEIGHTS.body, arbitrary: fc.constantFrom(...BODY_MUTATIONS) },
        { weight: WEIGHTS.frame, arbitrary: fc.constantFrom(...FRAME_MUTATIONS) },
      ),
      fc.nat(65_535),
      fc.nat(255),
    )
    .map(([connection, name, choices, mutation, at, value]): HostilePacket => {
      const body = bodyOf(name, choices, values);
      const bytes = packetOf(vocabulary.magic, name, body, mutation, at, value);
      const breaksFraming = mutation !== undefined && FRAME_MUTATIONS.includes(mutation);
      return { connection, name, isMutated: mutation !== undefined, breaksFraming, bytes };
    });
  const line = fc
    .tuple(
      fc.nat(vocabulary.connections - 1),
      fc.constantFrom(...vocabulary.lines, ''),
      fc.constantFrom('\n', '\r\n', ' \n'),
    )
    .map(
      ([connection, text, end]): HostilePacket => ({
        connection,
        name: 'TEXT',
        isMutated: false,
        breaksFraming: false,
        bytes: Buffer.from(text + end, 'latin1'),
      }),
    );
  const any = vocabulary.lines.length > 0 ? fc.oneof({ weight: 15, arbitrary: packet }, line) : packet;
  return fc.array(any, { minLength: 1, maxLength: vocabulary.maxPackets, size: 'max' });
}

type Values = Readonly<Record<ArgumentName, readonly Uint8Array[]>>;

function valuesOf({ handles, functions }: Vocabulary): Values {
  const numbers = withOdd(NUMBERS);
  return {
    function: withOdd([...functions, ...functions]),
    handle: withOdd([...handles, ...handles]),
    unique: withOdd(UNIQUES),
    reducer: withOdd(['', 'reduce']),
    aggregator: withOdd(['']),
    option: withOdd(['exceptions', 'exceptions']),
    clientId: withOdd(['me', 'with space']),
    code: withOdd(['JOB_NOT_FOUND', 'QUEUE_ERROR', 'server_error']),
    text: withOdd(['a text']),
    data: PAYLOADS,
    timeout: numbers,
    epoch: numbers,
    numerator: numbers,
    denominator: numbers,
    known: numbers,
    running: numbers,
    clients: numbers,
    minute: numbers,
    hour: numbers,
    dayOfMonth: numbers,
    month: numbers,
    dayOfWeek: numbers,
  };
}

function withOdd(texts: readonly string[]): Uint8Array[] {
  return [...texts.map((text) => Buffer.from(text, 'latin1')), ...ODD_TEXTS];
}

/** Joins arguments with NUL. Four bits of `choices` choose each argument. */
function bodyOf(name: PacketName, choices: number, values: Values): Buffer {
  const parts = PACKETS[name].arguments.flatMap((argument, index) => {
    const candidates = values[argument];
    const value = candidates[((choices >>> (4 * index)) & 0xf) % candidates.length] as Uint8Array;
    return index === 0 ? [value] : [Buffer.alloc(1), value];
  });
  return Buffer.concat(parts);
}

function packetOf(
  magic: Vocabulary['magic'],
  name: PacketName,
  body: Buffer,
  mutation: Mutation | undefined,
  at: number,
  value: number,
): Buffer {
  const whole = (content: Buffer): Buffer =>
    Buffer.concat([headerOf(`\0${magic}`, PACKETS[name].number, content.length), content]);
  if (mutation === undefined) return whole(body);
  return BODY_MUTATIONS.includes(mutation)
    ? whole(mutation(body, at, value))
    : mutation(whole(body), at, value);
}
