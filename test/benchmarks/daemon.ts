import { join } from 'node:path';
import { type BuilderProcess, spawnDaemon } from '../fixtures/builder-process.ts';

/** Compiled program, as `npm install` links it into the path. */
export const NODEPOOL_BUILDER: string = join(
  import.meta.dirname,
  '../../packages/nodepool-builder/bin/nodepool-builder.js',
);

/** Option of Node.js in the shebang line of {@link NODEPOOL_BUILDER}. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

/** Starts a daemon from the compiled packages, without waiting until it serves. */
export function spawnCompiled(config: string, program: string = NODEPOOL_BUILDER): BuilderProcess {
  return spawnDaemon([process.execPath, [YOUNG_GENERATION, program, '-d', '-c', config]]);
}

/** The first signal lets running jobs finish, the second stops them. Pending equal signals would be merged. */
export async function stop(daemon: BuilderProcess): Promise<void> {
  daemon.child.kill('SIGINT');
  await daemon.end('SIGTERM');
}

/** Disk images that are configured but never built. */
export const UNBUILT = `
  - name: docs
    elements: [mini-os]`;
