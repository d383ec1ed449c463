import { resolve } from 'node:path';
import type { ImageProvider, InstanceProvider, OperationOptions } from '@nodepool-builder/image-builder';
import { type Command, Option } from 'commander';
import type { Modules } from '../modules.ts';
import { isJobUploadId } from './job-upload-id.ts';
import { openJobInstances } from './job-workspace.ts';
import { type JsonOptions, jsonFileOption } from './json-output.ts';
import { duration } from './options.ts';
import {
  optionalConfigOption,
  type ProviderOptions,
  providerOption,
  withProvider,
} from './provider-option.ts';
import { type Removable, removeEach } from './remove-each.ts';

interface ReapOptions extends ProviderOptions, JsonOptions {
  readonly olderThan: number;
  readonly dryRun?: true;
}

/** Default of `--older-than`, in milliseconds: no job runs that long. */
const DEFAULT_AGE = 6 * 3_600_000;

/** `reap --provider P`: removes what killed jobs left in a provider. */
export function registerReap(program: Command, modules: Modules): void {
  program
    .command('reap')
    .summary('remove what killed CI jobs left in a provider')
    .description(
      'Removes what CI jobs left in a provider when they were killed. Of "upload": incomplete images, objects and ' +
        'partial files. Of "build": instances with their key pairs and floating IPs, and snapshots; name the provider ' +
        'as the build did. Anything younger than --older-than may belong to a running job and stays, so it has to be ' +
        'longer than the longest job. It touches nothing of a daemon, which cleans up by itself, and nothing without ' +
        'the mark of a job. "prune" deletes complete images.',
    )
    .addOption(providerOption(modules))
    .addOption(
      new Option('--older-than <duration>', 'least age, since the last change: 90m, 12h, 7d')
        .argParser(duration)
        .default(DEFAULT_AGE, '6h'),
    )
    .option('--dry-run', 'only print what would be removed')
    .addOption(optionalConfigOption())
    .option('--json', 'print JSON')
    .addOption(jsonFileOption())
    .addHelpText('after', '\nExample:\n  $ nodepool-builder reap --provider ci --older-than 12h --dry-run')
    .action(async (options: ReapOptions) => {
      const { olderThan, dryRun = false } = options;
      const isOld = ({ changedAt }: Orphan): boolean => Date.now() - changedAt.getTime() > olderThan;
      await withProvider(options, modules, async ({ configuration, provider }, signal) => {
        const jobs = openJobInstances({ providers: [configuration], instanceProviders: [] }, resolve('.'));
        try {
          const runsInstances = configuration.module.openInstances !== undefined;
          const instances = runsInstances ? jobs.instanceProvider(configuration.name) : undefined;
          const orphans = [
            ...(await orphansOfUploads(provider, signal)),
            ...(instances === undefined ? [] : await orphansOfBuilds(instances, signal)),
          ];
          await removeEach(orphans.filter(isOld).map(toRemovable), { ...options, dryRun, signal });
        } finally {
          jobs[Symbol.dispose]();
        }
      });
    });
}

/** Something in a provider whose job was killed. */
interface Orphan {
  /** For people. */
  readonly subject: string;
  /** Null for an orphan of a build. */
  readonly uploadId: string | null;
  readonly changedAt: Date;
  /** Resolves with false if it has changed meanwhile. */
  readonly remove: (options: OperationOptions) => Promise<unknown>;
}

async function orphansOfUploads(provider: ImageProvider, signal: AbortSignal): Promise<readonly Orphan[]> {
  const orphans = (await provider.partialUploads?.({ signal })) ?? [];
  return orphans.filter(({ uploadId }) => isJobUploadId(uploadId));
}

async function orphansOfBuilds(provider: InstanceProvider, signal: AbortSignal): Promise<readonly Orphan[]> {
  try {
    const instances = await provider.list({ signal });
    const captures = (await provider.captures?.({ signal })) ?? [];
    return [
      ...instances.map((instance) => ({
        subject: `instance ${instance.id} of build ${instance.buildId}`,
        uploadId: null,
        changedAt: instance.launchedAt,
        remove: (options: OperationOptions) => instance.destroy(options),
      })),
      ...captures.map((capture) => ({
        subject: `snapshot ${capture.externalId} of build ${capture.imageId}`,
        uploadId: null,
        changedAt: capture.capturedAt,
        remove: (options: OperationOptions) => capture.discard(options),
      })),
    ];
  } catch (error) {
    if (isWithoutInstances(error)) return [];
    throw error;
  }
}

/** Whether the cloud only stores images. */
function isWithoutInstances(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'no-such-service';
}

function toRemovable(orphan: Orphan): Removable {
  const { subject, uploadId, changedAt } = orphan;
  return {
    subject: `${subject} (unchanged since ${changedAt.toISOString()})`,
    record: { subject, 'upload-id': uploadId, changed: changedAt.toISOString() },
    remove: async (signal) => (await orphan.remove({ signal })) !== false,
  };
}
