import type { Command } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { loadConfiguration } from '../configuration/load.ts';
import { functionName } from '../daemon/functions.ts';
import { CommandError } from './command-error.ts';
import { followJob } from './follow-job.ts';
import { configOption } from './options.ts';

/** `image-upload IMAGE-ID --provider P`: prints the provider's id of the image. */
export function registerImageUpload(program: Command, builders: readonly string[]): void {
  program
    .command('image-upload')
    .summary('upload an image to a provider')
    .description('Has the builder that holds an image upload it, and prints the external-id it has there.')
    .argument('<image-id>', 'id of the image, as image-list shows it')
    .requiredOption('--provider <name>', 'name of the provider')
    .option('--image-name <name>', 'name under providers[].images (needed only if the provider has several)')
    .addOption(configOption())
    .action(async (imageId: string, options: { config: string; provider: string; imageName?: string }) => {
      const { configuration } = await loadConfiguration(options.config, { builders });
      const imageName = options.imageName ?? onlyImageName(configuration, options.provider);
      const result = await followJob(configuration, functionName('image-upload', imageId), {
        provider: options.provider,
        'image-name': imageName,
      });
      const { 'external-id': externalId }: { 'external-id': string } = JSON.parse(result.toString());
      console.log(externalId);
    });
}

function onlyImageName(configuration: Configuration, providerName: string): string {
  const provider = configuration.providers.find(({ name }) => name === providerName);
  if (provider === undefined) {
    const names = configuration.providers.map(({ name }) => name).join(', ');
    throw new CommandError(
      `provider "${providerName}" is not in ${configuration.file}; there is ${names || 'none'}`,
    );
  }
  const [first, ...others] = provider.images.map(({ name }) => name);
  if (first === undefined)
    throw new CommandError(`provider "${providerName}" has no images; add one to its images`);
  if (others.length > 0) {
    throw new CommandError(
      `provider "${providerName}" has several images; choose with --image-name: ${[first, ...others].join(', ')}`,
    );
  }
  return first;
}
