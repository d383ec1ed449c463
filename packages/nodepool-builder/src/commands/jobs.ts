import { randomBytes } from 'node:crypto';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type * as Internal from '@nodepool-builder/image-builder/internal';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { functionName } from '../protocol/functions.ts';
import { requireOffer } from '../site/ask-servers.ts';
import { CommandError, findByName, usageError } from '../terms/command-error.ts';
import { configured } from './configured-command.ts';

/** Commands that submit a job to the builders, and follow it. */
export const register = configured(
  {
    name: 'image-build',
    description:
      'Submits an image-build job, follows the build, and prints the id of the new image. The builder keeps the image; ' +
      'image-upload uploads it. The first Ctrl-C prints where the build runs, the second one cancels it, and a third one ' +
      'ends this command. The build continues after SIGTERM. "rebuild" leaves both to the manager; "build" builds ' +
      'here, without a builder.',
    argument: ['<diskimage>', 'name of the disk image, as in diskimages'],
    options: [
      new Option(
        '--image-id <id>',
        'id of the new image (default: the name, the time and four random characters)',
      ),
    ],
    example: 'debian',
    run: async ({ servers }, options: { imageId?: string }, name) => {
      const imageId = options.imageId ?? newImageId(name, new Date());
      if (options.imageId !== undefined) {
        const internal: typeof Internal = await import('@nodepool-builder/image-builder/internal');
        internal.checkImageId(imageId);
      }
      await followJob(await servers(), functionName('image-build', name), { 'image-id': imageId });
      console.log(imageId);
    },
  },
  {
    name: 'image-upload',
    description:
      'Submits an image-upload job to the builder that has the image, and prints its external-id in the provider. ' +
      'Ctrl-C does the same as for image-build. "upload" uploads a file from here, without a builder.',
    argument: ['<image-id>', 'id of the image, as image-list shows it'],
    options: [
      new Option('--provider <provider>', 'name of the provider').makeOptionMandatory(),
      new Option(
        '--image-name <name>',
        'name under providers[].images (needed only if the provider has several)',
      ),
    ],
    example: 'debian-20161118140211-9f3c --provider local',
    run: async (
      { servers, configuration },
      { provider, imageName }: { provider: string; imageName?: string },
      imageId,
    ) => {
      const argument = {
        provider,
        'image-name': imageName ?? onlyImageName(await configuration(), provider),
      };
      const result = await followJob(await servers(), functionName('image-upload', imageId), argument);
      console.log(await externalIdIn(result.toString()));
    },
  },
  {
    name: 'image-delete',
    description:
      'Submits an image-delete job to the builder that has the image, which deletes its files. Its uploads stay ' +
      'in their providers. "dib-image-delete" has the manager delete both.',
    argument: ['<image-id>', 'id of the image, as image-list shows it'],
    example: 'debian-20161118140211-9f3c',
    run: async ({ servers }, _, imageId) => {
      await followJob(await servers(), functionName('image-delete', imageId), {});
    },
  },
);

/** Returns an id for a new image: `debian-20161118140211-9f3c`. */
export function newImageId(name: string, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  return `${name.replaceAll(/[^\w.-]/g, '_')}-${time}-${randomBytes(2).toString('hex')}`;
}

/** Submits a job and follows it. The large modules are loaded after the first check, which finds most errors. */
async function followJob(
  servers: readonly ServerAddress[],
  name: string,
  argument: Readonly<Record<string, string>>,
): Promise<Buffer> {
  await requireOffer(servers, name);
  const { followJob: follow } = await import('./follow-job.ts');
  return await follow(servers, name, argument);
}

async function externalIdIn(uploadResult: string): Promise<string> {
  const { JsonReader } = await import('@nodepool-builder/image-builder/plugin');
  const reader = new JsonReader({
    type: 'object',
    required: ['external-id'],
    properties: { 'external-id': { type: 'string' } },
  });
  return reader.parse(uploadResult)['external-id'];
}

function onlyImageName({ providers, file }: Configuration, name: string): string {
  const provider = findByName(providers, 'provider', name, file);
  const [first, ...others] = provider.entry.images.map((image) => image.name);
  if (first === undefined) {
    throw new CommandError(`provider "${name}" has no images; add one to its images`, 'not-found');
  }
  if (others.length === 0) return first;
  const choice = [first, ...others].join(', ');
  throw usageError(`provider "${name}" has several images; choose with --image-name: ${choice}`);
}
