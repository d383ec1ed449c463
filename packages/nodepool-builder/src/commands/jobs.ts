import { randomBytes } from 'node:crypto';
import { Client, type ServerAddress } from '@nodepool-builder/gearman-node';
import { checkImageId, JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { jobServers } from '../daemon/embedded-gearmand.ts';
import { askServers } from '../daemon/fleet.ts';
import { functionName, subjectOf } from '../daemon/functions.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { CommandError, choiceOf, findByName, usageError } from './output.ts';
import { pollProgress, withProgress } from './progress.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Commands that submit a job to the builders, and follow it. */
export const JOB_COMMANDS: readonly ConfiguredCommand[] = [
  {
    name: 'image-build',
    description:
      'Submits an image-build job, follows the build, and prints the id of the new image. The builder keeps the image; ' +
      'image-upload uploads it. The build continues if this command is stopped. "rebuild" leaves both to the manager; ' +
      '"build" builds here, without a builder.',
    argument: ['<diskimage>', 'name of the disk image, as in diskimages'],
    options: [
      new Option(
        '--image-id <id>',
        'id of the new image (default: the name, the time and four random characters)',
      ),
    ],
    example: 'debian',
    run: async (configuration, options: { imageId?: string }, name) => {
      const imageId = options.imageId ?? newImageId(name, new Date());
      checkImageId(imageId);
      await followJob(configuration, functionName('image-build', name), { 'image-id': imageId });
      console.log(imageId);
    },
  },
  {
    name: 'image-upload',
    description:
      'Submits an image-upload job to the builder that holds the image, and prints its external-id in the provider. ' +
      '"upload" uploads a file from here, without a builder.',
    argument: ['<image-id>', 'id of the image, as image-list shows it'],
    options: [
      new Option('--provider <provider>', 'name of the provider').makeOptionMandatory(),
      new Option(
        '--image-name <name>',
        'name under providers[].images (needed only if the provider has several)',
      ),
    ],
    example: 'debian-20161118140211-9f3c --provider local',
    run: async (configuration, options: { provider: string; imageName?: string }, imageId) => {
      const { provider, imageName = onlyImageName(configuration, provider) } = options;
      const argument = { provider, 'image-name': imageName };
      const result = await followJob(configuration, functionName('image-upload', imageId), argument);
      console.log(UPLOAD_RESULT.parse(result.toString())['external-id']);
    },
  },
  {
    name: 'image-delete',
    description:
      'Submits an image-delete job to the builder that holds the image, which deletes its files. Uploads of it stay ' +
      'in their providers. "dib-image-delete" has the manager delete both.',
    argument: ['<image-id>', 'id of the image, as image-list shows it'],
    example: 'debian-20161118140211-9f3c',
    run: async (configuration, _, imageId) => {
      await followJob(configuration, functionName('image-delete', imageId), {});
    },
  },
];

/** An id for an image that is built now: `debian-20161118140211-9f3c`. */
export function newImageId(name: string, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  return `${name.replaceAll(/[^\w.-]/g, '_')}-${time}-${randomBytes(2).toString('hex')}`;
}

const UPLOAD_RESULT = new JsonReader({
  type: 'object',
  required: ['external-id'],
  properties: { 'external-id': { type: 'string' } },
});

function onlyImageName({ providers, file }: Configuration, name: string): string {
  const provider = findByName(providers, 'provider', name, file);
  const [first, ...others] = provider.entry.images.map((image) => image.name);
  if (first === undefined) {
    throw new CommandError(`provider "${name}" has no images; add one to its images`, {
      exitReason: 'not-found',
    });
  }
  if (others.length === 0) return first;
  const choice = [first, ...others].join(', ');
  throw usageError(`provider "${name}" has several images; choose with --image-name: ${choice}`);
}

/**
 * Submits a job, shows its progress on standard error until it ends, and returns its result. SIGTERM and SIGINT stop only
 * the waiting, as `cancel` stops the job.
 *
 * @throws CommandError if no builder offers the function, or with the builder's reason; GearmanError
 */
async function followJob(
  configuration: Configuration,
  name: string,
  argument: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const servers = jobServers(configuration);
  await requireOffer(servers, name);
  const client = new Client({ servers, clientId: 'nodepool-builder command' });
  try {
    return await untilStopSignal((signal) =>
      withProgress(name, async (onProgress, onReading) => {
        const job = client.submit(name, JSON.stringify({ ...argument, reason: true }), { signal });
        const ended = new AbortController();
        const polling = pollProgress(servers, name, job.handle, onReading, ended.signal);
        try {
          for await (const event of job) {
            if (event.type === 'status') onProgress({ done: event.numerator, total: event.denominator });
          }
          return await job;
        } finally {
          ended.abort();
          await polling;
        }
      }),
    );
  } catch (cause) {
    const { failureOf } = await import('@nodepool-builder/image-manager'); // only here: it takes long to load
    const failure = failureOf(cause);
    if (failure === undefined) throw cause;
    const { host, reason, 'cancelled-by': by } = failure;
    if (by !== undefined) throw new CommandError(`${name} was ${reason}`, { cause, exitReason: 'cancelled' });
    const whole = name.startsWith('image-build:')
      ? `; "nodepool-builder logs ${argument['image-id']}" shows the log`
      : '';
    throw new CommandError(`${name} failed on ${host}: ${reason}${whole}`, { cause });
  } finally {
    await client.close();
  }
}

/** A job for a function that no builder offers would wait in the queue forever, without an error. */
async function requireOffer(servers: readonly ServerAddress[], wanted: string): Promise<void> {
  const functions = await askServers(servers, (admin) => admin.status());
  const offered = functions.filter(({ availableWorkers }) => availableWorkers > 0).map(({ name }) => name);
  if (offered.includes(wanted)) return;
  const verb = wanted.slice(0, wanted.indexOf(':'));
  const subjects = new Set(offered.filter((name) => name.startsWith(`${verb}:`)).map(subjectOf));
  const remedy =
    subjects.size > 0
      ? choiceOf([...subjects].toSorted().slice(0, 10))
      : `nothing is offered for ${verb}; start nodepool-builder, or see its log`;
  throw new CommandError(`no builder offers ${wanted}; ${remedy}`, { exitReason: 'not-found' });
}
