import { formatAddress } from '@nodepool-builder/gearman-node';
import type { Logger } from '@nodepool-builder/image-builder';
import type { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import { packageVersion } from '../version.ts';

/** Logs what the process is and holds, in place of the threads that a Python program would list at SIGUSR2. */
export function logDiagnostics(builder: NodepoolBuilder, logger: Logger): void {
  const { rss, heapUsed, external } = process.memoryUsage();
  const facts = {
    version: `${packageVersion()} on Node ${process.versions.node}`,
    process: `${process.pid}, up for ${process.uptime().toFixed(0)} s`,
    memory: `${mebibytes(rss)}, heap ${mebibytes(heapUsed)}, outside of it ${mebibytes(external)}`,
    'job servers': builder.servers.map(formatAddress).join(', '),
    images: `${builder.repository.images.size} in ${builder.repository.directory}`,
    'active resources': counted(process.getActiveResourcesInfo()),
  };
  for (const [name, fact] of Object.entries(facts)) logger.info(`diagnostics: ${name}: ${fact}`);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function counted(names: readonly string[]): string {
  const kinds = Object.entries(Object.groupBy(names, (name) => name));
  return kinds.map(([name, all = []]) => `${all.length} ${name}`).join(', ');
}
