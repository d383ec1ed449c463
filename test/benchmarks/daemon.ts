import { join } from 'node:path';
import { type BuilderProcess, spawnDaemon } from '../fixtures/builder-process.ts';

/** The program that `npm install` puts on the path, compiled: what users run. */
export const NODEPOOL_BUILDER: string = join(
  import.meta.dirname,
  '../../packages/nodepool-builder/bin/nodepool-builder.js',
);

/** Starts a daemon on the compiled packages; it need not serve yet when this returns. */
export function spawnCompiled(config: string, program: string = NODEPOOL_BUILDER): BuilderProcess {
  return spawnDaemon([process.execPath, [program, '-d', '-c', config]]);
}

/** Two signals, for the first lets the jobs that run come to an end; they differ, since equal ones become one. */
export async function stop(daemon: BuilderProcess): Promise<void> {
  daemon.child.kill('SIGINT');
  await daemon.end('SIGTERM');
}

/** Disk images that are there to be configured, and are not built. */
export const UNBUILT = `
  - name: docs
    elements: [mini-os]`;
