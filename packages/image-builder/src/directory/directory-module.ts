import { imageIdError } from '../image-id.ts';
import type { ProviderModule } from '../modules.ts';
import type { ObjectSchema } from '../settings-schema.ts';
import { DirectoryProvider } from './directory-provider.ts';

const SETTINGS = {
  type: 'object',
  description: 'a directory that serves images, such as a libvirt pool or a folder of a web server',
  required: ['directory'],
  properties: {
    directory: {
      type: 'string',
      format: 'directory',
      minLength: 1,
      description: 'Directory that serves the images. It must exist.',
      $comment: 'name the directory that it serves',
    },
  },
} as const satisfies ObjectSchema;

/** The longest suffix of a file name: an image-id that the manager makes. */
const ID_END = '-0000000001-aaaaaaaa';

/** `type: directory`. */
export const DIRECTORY_MODULE: ProviderModule<typeof SETTINGS> = {
  type: 'directory',
  settings: SETTINGS,
  *check({ images }) {
    for (const [index, { name }] of images.entries()) {
      const error = imageIdError(`${name}${ID_END}`);
      if (error === undefined) continue;
      yield {
        pointer: `/images/${index}/name`,
        severity: 'job-error',
        reason: `leads to invalid file names, so that uploads fail: each ${error}`,
        remedy: 'choose a plain name',
      };
    }
  },
  images: {
    open: ({ name, directory, 'bandwidth-limit': bandwidthLimit }, { formats, logger }) =>
      new DirectoryProvider({
        name,
        directory,
        formats,
        logger,
        ...(bandwidthLimit !== undefined && { bandwidthLimit }),
      }),
  },
};
