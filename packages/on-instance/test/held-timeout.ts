import type { TestContext } from 'node:test';

/**
 * Shortens timeouts of exactly this length: they fire when the test calls the returned function. The tested code starts
 * them with the global `setTimeout`.
 */
export function holdTimeout(t: TestContext, seconds: number): () => void {
  const start = globalThis.setTimeout;
  const held: (() => void)[] = [];
  t.mock.method(globalThis, 'setTimeout', (callback: () => void, milliseconds: number) => {
    if (milliseconds === seconds * 1000) held.push(callback);
    return start(callback, milliseconds);
  });
  return () => {
    for (const callback of held.splice(0)) callback();
  };
}
