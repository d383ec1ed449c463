import type { SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { objectOf } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { TEXT } from '../terms/record-schema.ts';
import { JobError, keysOf } from './job-reply.ts';

/** Parses the argument of `image-build:<name>`; other keys are ignored. @throws JobError */
export const parseBuildArguments = parserOf(
  objectOf(
    { 'image-id': TEXT },
    {
      // Adds the image's checksum, attestations or package list to the result. Only our own clients send them.
      checksum: { type: 'boolean' },
      attestations: { type: 'boolean' },
      packages: { type: 'boolean' },
    },
  ),
  '{"image-id": "<id>"}',
);

/** Parses the argument of `image-upload:<image-id>`; other keys are ignored. @throws JobError */
export const parseUploadArguments = parserOf(
  objectOf(
    {
      provider: TEXT, // providers[].name
      'image-name': TEXT, // providers[].images[].name, which may differ from the name of the disk image
    },
    {
      // Checksum from an image-build job or an earlier upload; empty if unknown. The result then contains the checksum
      // of the uploaded bytes. Only our own clients send it.
      checksum: TEXT,
      // Adds the attestations of the build, the conversion and the upload to the result. Only our own clients send it.
      attestations: { type: 'boolean' },
    },
  ),
  '{"provider": "<name>", "image-name": "<name>"}',
);

function parserOf<const S extends SettingsSchema>(
  schema: S,
  example: string,
): (payload: Buffer) => SettingsOf<S> {
  const reader = new JsonReader(schema);
  return (payload) => {
    try {
      return reader.parse(payload.toString());
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new JobError(`the job's argument is invalid: ${reason}; send ${example}`, { cause });
    }
  };
}

/** Returns the checksum of an `image-upload` job that only compares a copy; undefined for a real upload. */
export function comparisonOf(payload: Buffer): string | undefined {
  const { compare } = keysOf(payload);
  return typeof compare === 'string' ? compare : undefined;
}
