import assert from 'node:assert/strict';
import { Admin } from '@nodepool-builder/gearman-node';
import * as fc from 'fast-check';
import type { FuzzTarget } from './fuzz.ts';
import { assertHonest } from './honest-error.ts';
import type { HostilePacket } from './hostile-packets.ts';
import { HostileServer } from './hostile-server.ts';
import { BODY_MUTATIONS } from './mutations.ts';

/** Smaller than the longest generated line, so that the limit is also tested. */
const MAX_REPLY_SIZE = 256 * 1024;

/** Valid replies of a job server. */
const REPLIES: readonly Buffer[] = [
  '.\n',
  '.\r\n',
  'f\t3\t1\t2\n.\n',
  'f\t3\t1\t2\nwith\ttab\t0\t0\t0\n.\n',
  'f\t1\t2\t3\t4\n.\n',
  '38 127.0.0.1 me : f image-build:x\n39 ::1 - :\n.\n',
  'H:x:1\t2\t0\t1\n.\n',
  'key\n\n.\n',
  'OK\r\n',
  'OK 1.1.20\n',
  'OK 4711\n',
  'ERR UNKNOWN_COMMAND Unknown+server+command\r\n',
  'ERR there are still connected workers or executing clients\r\n',
  '\0RES\0\0\0\x11\0\0\0\0',
  '\n'.repeat(5000),
  'f\t1\t1\t1\n'.repeat(5000),
  'x'.repeat(300_000),
].map((text) => Buffer.from(text, 'latin1'));

/** Content of long lines, chosen to reveal super-linear parsing. */
const LONG_LINES = {
  beginnings: ['', 'ERR ', 'OK ', '38 127.0.0.1 ', '38 ', 'f\t', 'H:x:1\t'],
  repeated: ['x', ' ', '\t', ':', ' : ', '1', '+', 'x ', '1\t', '\r', 'ERR '],
  lengths: [5000, 60_000, 200_000],
  ends: ['\n', '\t\n', ' \n', '\t1\t1\t1\n', '\r\n', ':\n', 'x', '\n.\n'],
} as const;

/** An admin client of a hostile server: each command resolves with a valid value, or rejects with a typed error. */
export const adminTarget: FuzzTarget = {
  name: 'admin',
  open: async () => ({
    sessions: fc.array(reply(), { minLength: 1, maxLength: 24, size: 'max' }),
    run: attack,
    close: async () => {},
  }),
};

function reply(): fc.Arbitrary<HostilePacket> {
  return fc
    .tuple(
      fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...REPLIES) }, longLine()),
      fc.option(fc.constantFrom(...BODY_MUTATIONS), { nil: undefined, freq: 2 }),
      fc.nat(65_535),
      fc.nat(255),
    )
    .map(([text, mutation, at, value]) => ({
      connection: 0,
      name: 'TEXT',
      isMutated: mutation !== undefined,
      breaksFraming: mutation !== undefined,
      bytes: mutation?.(text, at, value) ?? text,
    }));
}

function longLine(): fc.Arbitrary<Buffer> {
  const { beginnings, repeated, lengths, ends } = LONG_LINES;
  return fc
    .tuple(
      fc.constantFrom(...beginnings),
      fc.constantFrom(...repeated),
      fc.constantFrom(...lengths),
      fc.constantFrom(...ends),
    )
    .map(([beginning, unit, length, end]) =>
      Buffer.from(beginning + unit.repeat(length / unit.length) + end, 'latin1'),
    );
}

async function attack(session: readonly HostilePacket[]): Promise<void> {
  const hostile = await HostileServer.listen();
  const admin = new Admin(hostile.address, { maxReplySize: MAX_REPLY_SIZE });
  try {
    const settled = Promise.allSettled([
      admin.status(),
      admin.workers(),
      admin.version(),
      admin.priorityStatus(),
      admin.maxQueue('f', 2),
      admin.pid(),
      admin.showJobs(),
      admin.cancelJob('H:x:1'),
      admin.showUniqueJobs(),
    ]);
    const server = await hostile.accepted;
    for (const { bytes } of session) server.sendBytes(bytes);
    server.socket.end();
    await server.closed;
    for (const outcome of await settled) {
      if (outcome.status === 'rejected') assertHonest(outcome.reason);
      else assertNumbers(outcome.value);
    }
  } finally {
    await admin.close();
  }
}

/** Checks that all numbers in a value are non-negative integers. */
function assertNumbers(value: unknown): void {
  if (typeof value === 'number') assert.ok(value >= 0 && Number.isFinite(value), `${value}`);
  else if (typeof value === 'object' && value !== null) Object.values(value).forEach(assertNumbers);
}
