import { createAjv } from '@nodepool-builder/image-builder/module-kit';
import type { JSONSchemaType } from 'ajv';

/** The argument of `image-build:<name>`; other keys are ignored. */
export interface BuildArguments {
  readonly 'image-id': string;
  /** True to add the image's checksum to the result; only our own clients send it. */
  readonly checksum?: boolean;
}

/** The argument of `image-upload:<image-id>`; other keys are ignored. */
export interface UploadArguments {
  /** `providers[].name`. */
  readonly provider: string;
  /** `providers[].images[].name`, which may differ from the name of the disk image. */
  readonly 'image-name': string;
  /**
   * Checksum from an `image-build` job or an earlier upload; empty if unknown. The result then has the checksum of the
   * uploaded bytes. Only our own clients send it.
   */
  readonly checksum?: string;
}

/** A job's argument is invalid; the job ends with WORK_EXCEPTION. */
export class InvalidArgumentsError extends Error {
  override readonly name = 'InvalidArgumentsError';
}

const ajv = createAjv();

const buildSchema: JSONSchemaType<BuildArguments> = {
  type: 'object',
  required: ['image-id'],
  properties: { 'image-id': { type: 'string' }, checksum: { type: 'boolean', nullable: true } },
};

const uploadSchema: JSONSchemaType<UploadArguments> = {
  type: 'object',
  required: ['provider', 'image-name'],
  properties: {
    provider: { type: 'string' },
    'image-name': { type: 'string' },
    checksum: { type: 'string', nullable: true },
  },
};

/** @throws InvalidArgumentsError */
export const parseBuildArguments: (payload: Buffer) => BuildArguments = parser(
  buildSchema,
  '{"image-id": "<id>"}',
);

/** @throws InvalidArgumentsError */
export const parseUploadArguments: (payload: Buffer) => UploadArguments = parser(
  uploadSchema,
  '{"provider": "<name>", "image-name": "<name>"}',
);

/** Returns the checksum of an `image-upload` job that only compares a copy; undefined for a real upload. */
export function comparisonOf(payload: Buffer): string | undefined {
  try {
    const { compare }: { compare?: unknown } = Object(JSON.parse(payload.toString()));
    return typeof compare === 'string' ? compare : undefined;
  } catch {
    return undefined; // parseUploadArguments reports the reason
  }
}

function parser<T>(schema: JSONSchemaType<T>, example: string): (payload: Buffer) => T {
  return (payload) => {
    const value = parseJson(payload, example);
    if (ajv.validate(schema, value)) return value;
    const [fault] = ajv.errors ?? [];
    const where = fault?.instancePath.slice(1);
    throw new InvalidArgumentsError(
      `the job's argument ${where ? `"${where}" ` : ''}${fault?.message ?? 'is wrong'}; send ${example}`,
    );
  };
}

function parseJson(payload: Buffer, example: string): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch (error) {
    throw new InvalidArgumentsError(`the job's argument is not JSON; send ${example}`, { cause: error });
  }
}
