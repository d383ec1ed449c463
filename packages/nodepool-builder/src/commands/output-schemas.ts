import type { ObjectSchema } from '@nodepool-builder/image-builder';
import { BUILD_ORIGIN } from '../attestation/origin/origin-record.ts';
import { EVENT_SCHEMA } from '../daemon/notifications/event.ts';
import { BUILD_RECORD, PLAN_RECORD, STATUS_RECORD, UPLOAD_RECORD } from '../site/records.ts';
import { BUILT_IMAGE } from './build.ts';
import { PRUNED_RECORD, REAPED_RECORD } from './cleanup.ts';
import { CONVERTED_FILE } from './convert.ts';
import { CHECK_RECORD } from './doctor/checks.ts';
import { OFFERED_IMAGE_RECORD } from './image-list.ts';
import { LATEST } from './latest.ts';
import { UNRECORDED_IMAGE_RECORD } from './manager-lists.ts';
import { UPLOADED_IMAGE } from './upload.ts';
import { VALIDATED_FILE } from './validate.ts';
import { VERIFIED_IMAGE } from './verify.ts';

/** The JSON of a command. */
interface CommandOutput {
  /** Command line that prints the output. */
  readonly command: string;
  /** True if the output is an array of records instead of one record. */
  readonly isList: boolean;
  readonly record: ObjectSchema;
}

/** The JSON of each command that shows records, by the name of its schema. */
export const OUTPUTS: Readonly<Record<string, CommandOutput>> = {
  plan: { command: 'plan', isList: true, record: PLAN_RECORD },
  'image-status': { command: 'image-status', isList: true, record: STATUS_RECORD },
  'image-status-image': { command: 'image-status IMAGE-ID', isList: false, record: BUILD_ORIGIN },
  'dib-image-list': { command: 'dib-image-list', isList: true, record: BUILD_RECORD },
  'image-list': { command: 'image-list', isList: true, record: UPLOAD_RECORD },
  'image-list-offered': { command: 'image-list --offered', isList: true, record: OFFERED_IMAGE_RECORD },
  'alien-image-list': { command: 'alien-image-list', isList: true, record: UNRECORDED_IMAGE_RECORD },
  doctor: { command: 'doctor', isList: true, record: CHECK_RECORD },
  build: { command: 'build', isList: false, record: BUILT_IMAGE },
  convert: { command: 'convert', isList: false, record: CONVERTED_FILE },
  upload: { command: 'upload', isList: false, record: UPLOADED_IMAGE },
  latest: { command: 'latest', isList: false, record: LATEST },
  verify: { command: 'verify', isList: false, record: VERIFIED_IMAGE },
  prune: { command: 'prune', isList: true, record: PRUNED_RECORD },
  reap: { command: 'reap', isList: true, record: REAPED_RECORD },
};

/**
 * JSON Schemas by the path of the file in the package, for programs that read the output of `--json` or notifications.
 */
export function outputSchemas(): Readonly<Record<string, object>> {
  const schemas = Object.entries(OUTPUTS).map(([name, output]) => {
    return [`schemas/${name}.schema.json`, outputSchema(output)] as const;
  });
  return {
    'validate.schema.json': outputSchema({ command: 'validate', isList: true, record: VALIDATED_FILE }),
    'schemas/notification.schema.json': {
      $schema: DRAFT,
      title: 'Event of nodepool-builder, as receivers of notifications get it',
      ...EVENT_SCHEMA,
    },
    ...Object.fromEntries(schemas),
  };
}

const DRAFT = 'http://json-schema.org/draft-07/schema#';

function outputSchema({ command, isList, record }: CommandOutput): object {
  const title = `Output of nodepool-builder ${command} --json`;
  return { $schema: DRAFT, title, ...(isList ? { type: 'array', items: record } : record) };
}
