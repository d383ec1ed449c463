import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JobServer } from '@nodepool-builder/gearman-node';
import * as fc from 'fast-check';
import {
  encodeAdded,
  encodeRemoved,
  type JournaledJob,
} from '../../packages/gearman-node/src/journal/journal-record.ts';
import { settled } from '../../packages/gearman-node/test/fixtures/job-server-site.ts';
import { RawPeer } from '../../packages/gearman-node/test/fixtures/raw-peer.ts';
import type { FuzzTarget } from './fuzz.ts';
import type { HostilePacket } from './hostile-packets.ts';
import { BODY_MUTATIONS } from './mutations.ts';

const HANDLES = ['H:x:1', 'H:x:2', 'H:x:3', 'H:x:4', 'H:x:5'];

const PAYLOADS = ['', 'a payload', '\n{"removed":"H:x:1"}\n', '\0\xff', 'long'.repeat(400)];

/** A record in a journal, and its content before the corruption. */
interface JournalPiece extends HostilePacket {
  readonly record: { readonly job: JournaledJob } | { readonly removed: string };
  readonly whole: Buffer;
}

/** A job server with a damaged journal: it restores every job before the damage, and invents none. */
export const journalTarget: FuzzTarget = {
  name: 'journal',
  open: async () => {
    const directory = await mkdtemp(join(tmpdir(), 'fuzz-journal-'));
    return {
      sessions: journals(),
      run: (session) => check(directory, session as JournalPiece[]),
      close: () => rm(directory, { recursive: true }),
    };
  },
};

/** Returns some intact records, followed by some that are mostly corrupted. */
function journals(): fc.Arbitrary<JournalPiece[]> {
  const job = fc.record({
    handle: fc.constantFrom(...HANDLES),
    function: fc.constantFrom('f', 'g'),
    unique: fc.constantFrom('', 'u'),
    reducer: fc.constant(''),
    priority: fc.constantFrom('low', 'normal', 'high'),
    due: fc.constant(0),
    payload: fc.constantFrom(...PAYLOADS).map((text) => Buffer.from(text, 'latin1')),
  });
  const record = fc.oneof(
    { weight: 3, arbitrary: job.map((added) => ({ job: added })) },
    fc.constantFrom(...HANDLES).map((removed) => ({ removed })),
  );
  const mutation = fc.constantFrom(undefined, ...BODY_MUTATIONS);
  const spoilt = fc.tuple(record, mutation, fc.nat(65_535), fc.nat(255));
  const whole = spoilt.map(([piece]) => pieceOf(piece, undefined, 0, 0));
  return fc
    .tuple(
      fc.array(whole, { maxLength: 6, size: 'max' }),
      fc.array(
        spoilt.map((parts) => pieceOf(...parts)),
        { minLength: 1, maxLength: 8, size: 'max' },
      ),
    )
    .map((parts) => parts.flat());
}

function pieceOf(
  record: JournalPiece['record'],
  mutation: (typeof BODY_MUTATIONS)[number] | undefined,
  at: number,
  value: number,
): JournalPiece {
  const whole = 'job' in record ? encodeAdded(record.job) : encodeRemoved(record.removed);
  const bytes = mutation?.(whole, at, value) ?? whole;
  const isMutated = mutation !== undefined;
  return { connection: 0, name: 'TEXT', isMutated, breaksFraming: isMutated, bytes, record, whole };
}

async function check(directory: string, session: readonly JournalPiece[]): Promise<void> {
  const path = join(directory, 'jobs.journal');
  const written = Buffer.concat(session.map(({ bytes }) => bytes));
  await rm(`${path}.damaged`, { force: true });
  await writeFile(path, written);
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error: assert.fail };
  const server = new JobServer({ journal: directory, logger });
  try {
    const { port } = await server.listen(0);
    const worker = await RawPeer.connect(port);
    assertFound(session, await grabAll(worker));
    assert.deepEqual(await settled(worker), []);
    await worker.close();
    if (warnings.length > 0) assert.deepEqual(await readFile(`${path}.damaged`), written);
  } finally {
    await server.close();
  }
}

/** Returns the jobs that the server assigns: handle, function and payload. */
async function grabAll(worker: RawPeer): Promise<string[][]> {
  for (const name of ['f', 'g']) worker.send('CAN_DO', name);
  const found: string[][] = [];
  for (;;) {
    const [name, ...job] = await worker.ask('GRAB_JOB');
    if (name === 'NO_JOB') return found;
    found.push(job);
  }
}

/** Records after the damage may or may not be restored. */
function assertFound(session: readonly JournalPiece[], found: readonly string[][]): void {
  const damage = session.findIndex(({ bytes, whole }) => !bytes.equals(whole));
  const intact = damage < 0 ? session : session.slice(0, damage);
  const open = damage < 0 ? [] : session.slice(damage);
  const written = new Set(session.flatMap(({ record }) => ('job' in record ? [shown(record.job)] : [])));
  for (const job of found) assert.ok(written.has(job.join('|')), `${job.join('|')} was never there`);

  const certain = new Set<string>();
  for (const { record } of intact) {
    if ('job' in record) certain.add(record.job.handle);
    else certain.delete(record.removed);
  }
  for (const { record } of open) if ('removed' in record) certain.delete(record.removed);
  const handles = new Set(found.map(([handle]) => handle));
  assert.deepEqual(
    [...certain].filter((handle) => !handles.has(handle)),
    [],
    'jobs were lost',
  );
}

function shown({ handle, function: name, payload }: JournaledJob): string {
  return [handle, name, payload.toString('latin1')].join('|');
}
