import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import type { HostilePacket } from './hostile-packets.ts';

/** A program under test. */
export interface FuzzTarget {
  readonly name: string;
  readonly open: () => Promise<OpenTarget>;
}

/** A running target, for any number of sessions. */
export interface OpenTarget {
  readonly sessions: fc.Arbitrary<HostilePacket[]>;
  /** Sends the packets of one session. Rejects if the target misbehaves. */
  readonly run: (session: readonly HostilePacket[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Options of a run. */
export interface FuzzOptions {
  readonly packets: number;
  readonly seed: number;
  /** Called occasionally with the number of packets sent. */
  readonly progress?: (packets: number) => void;
}

/** Figures of a run. */
export interface FuzzReport {
  readonly sessions: number;
  readonly packets: number;
  readonly mutated: number;
  /** Growth of used memory since the first sessions, in bytes. */
  readonly growth: number;
}

/** Sessions between two memory measurements. A batch's seed is the first seed plus its number. */
const BATCH = 100;

/** Max duration and processor time of a session in milliseconds, after which it counts as hanging. */
const SESSION_LIMIT = 5_000;

/** Max growth after everything is closed: caches, compiled code, and the fuzzer's own memory. */
const MAX_GROWTH = 48 * 1024 * 1024;

/** Max growth at any time. */
const MAX_PEAK = 768 * 1024 * 1024;

/**
 * Sends hostile packets to a target.
 *
 * @throws Error with a small session that shows the error, and the seed that reproduces it
 */
export async function fuzz(target: FuzzTarget, options: FuzzOptions): Promise<FuzzReport> {
  const crashes: unknown[] = [];
  const onCrash = (error: unknown): void => void crashes.push(error);
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  const { sessions, run, close } = await target.open();
  const thrown = { sessions: 0, packets: 0, mutated: 0 };
  const property = fc.asyncProperty(sessions, async (session) => {
    thrown.sessions += 1;
    thrown.packets += session.length;
    thrown.mutated += session.filter(({ isMutated }) => isMutated).length;
    const start = process.cpuUsage();
    await run(session);
    await turn();
    const { user, system } = process.cpuUsage(start);
    const spent = (user + system) / 1000;
    assert.ok(
      spent < SESSION_LIMIT,
      `a session took ${spent} ms of the processor; nothing else ran meanwhile`,
    );
    if (crashes.length > 0) throw new Error('the process would have crashed', { cause: crashes.shift() });
  });
  const atStart = process.memoryUsage.rss();
  let settled: number | undefined;
  try {
    for (let batch = 0; thrown.packets < options.packets; batch += 1) {
      const seed = options.seed + batch;
      const details = await fc.check(property, { seed, numRuns: BATCH, timeout: SESSION_LIMIT });
      if (details.failed) throw failure(target, seed, details);
      const peak = process.memoryUsage.rss() - atStart;
      assert.ok(peak < MAX_PEAK, `${target.name} with seed ${seed}: ${peak} bytes more are in use`);
      settled ??= await inUse();
      options.progress?.(thrown.packets);
    }
    const growth = (await inUse()) - (settled ?? 0);
    assert.ok(growth < MAX_GROWTH, `${target.name}: ${growth} bytes were not given back`);
    return { ...thrown, growth };
  } finally {
    await close();
    process.off('uncaughtException', onCrash);
    process.off('unhandledRejection', onCrash);
  }
}

function failure(
  { name }: FuzzTarget,
  seed: number,
  { errorInstance, counterexample }: fc.RunDetails<[HostilePacket[]]>,
): Error {
  const [session = []] = counterexample ?? [];
  const packets = session.map(
    ({ connection, name: packet, bytes }) => `  ${connection} ${packet}: ${bytes.toString('latin1')}`,
  );
  const lines = packets.map((line) => (line.length > 300 ? `${line.slice(0, 300)}…` : line));
  const message = [
    `${name}: ${errorInstance instanceof Error ? errorInstance.message : String(errorInstance)}`,
    `a session that shows it (connection, packet, bytes):`,
    ...lines.map((line) => JSON.stringify(line)),
    `again: npm run fuzz -- --target ${name} --seed ${seed}`,
  ].join('\n');
  return new Error(message, { cause: errorInstance });
}

/** Returns the bytes in use that a garbage collection cannot free. */
async function inUse(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 3; round += 1) {
    await turn();
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
