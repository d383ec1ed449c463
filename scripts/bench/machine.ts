import { execFile } from 'node:child_process';
import { availableParallelism, loadavg, totalmem } from 'node:os';
import { promisify } from 'node:util';

/** Describes the machine that the results depend on, in one line. */
export async function describeMachine(): Promise<string> {
  return [
    `Measured with ${availableParallelism()} cores`,
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `Node ${process.versions.node}`,
    `gearmand ${await versionOf('/usr/sbin/gearmand')}`,
    `qemu-img ${await versionOf('qemu-img')}`,
    `load average ${loadavg()[0]?.toFixed(1)} at the end, including the benchmarks`,
  ].join(', ');
}

/** Returns the first version number in the output of `--version`. */
async function versionOf(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)(command, ['--version']);
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? 'of unknown version';
}
