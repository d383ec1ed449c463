/**
 * Shifts the wall clock of a process: `node --import shifted-clock.ts`. The file SOAK_CLOCK contains the offset in
 * milliseconds; a change takes effect within moments, like a step of the real clock. Timers are unaffected, as they
 * are when the real clock is set.
 */
import { readFileSync } from 'node:fs';

/** Milliseconds between two reads of the file. */
const INTERVAL = 100;

const file = process.env.SOAK_CLOCK ?? '';
const RealDate = Date;
let offset = 0;
let readAt = Number.NEGATIVE_INFINITY;

function now(): number {
  if (performance.now() - readAt > INTERVAL) {
    readAt = performance.now();
    offset = Number(readFileSync(file, 'utf8'));
  }
  return RealDate.now() + offset;
}

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
});
