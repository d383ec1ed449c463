import { join } from 'node:path';
import type {
  Diagnostic,
  SettingsContext,
  SettingsOf,
  SettingsSchema,
} from '@nodepool-builder/image-builder';
import { TEXT } from '../yaml/schema-node.ts';

/** Settings of `nodepool-builder manage`. */
export const MANAGER = {
  type: 'object',
  description: 'Settings of the manager.',
  additionalProperties: false,
  properties: {
    store: {
      ...TEXT,
      description:
        'Store of the records of builds and uploads: an SQLite file, or a PostgreSQL database ' +
        '(`postgresql://user@host/database`), which several managers can share. Default: ' +
        '`.nodepool-builder/manager.sqlite` in `images-dir`.',
    },
    'retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 60,
      description:
        'Seconds from a failed build or upload to its retry. Each further failure doubles the pause.',
    },
    'max-retry-delay': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 3600,
      description: 'Maximum pause before a retry, in seconds.',
    },
    'orphan-scan-interval': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 600,
      description: 'Seconds between two scans for orphans. An orphan that two scans find is deleted.',
    },
    'absence-timeout': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 1800,
      description: 'Seconds after which an image that a provider needs is rebuilt if no builder offers it.',
    },
  },
} as const satisfies SettingsSchema;

/** The section `manager`. */
export interface ManagerSettings extends SettingsOf<typeof MANAGER> {
  /** A file of SQLite, as an absolute path, or the URL of a PostgreSQL database. */
  readonly store: string;
}

/** The parts of a file on which the section depends. */
interface ManagerParts {
  readonly manager: SettingsOf<typeof MANAGER>;
  readonly general: { readonly 'images-dir': string };
  readonly context: Pick<SettingsContext, 'absolute'>;
}

/** A `manager.store` that is a database URL. Anything else is a path. */
export const DATABASE_URL: RegExp = /^postgres(?:ql)?:\/\//;

/** Reads the section `manager`. */
export function readManager({ manager, general, context }: ManagerParts): ManagerSettings {
  const { store = join(general['images-dir'], '.nodepool-builder/manager.sqlite') } = manager;
  return { ...manager, store: DATABASE_URL.test(store) ? store : context.absolute(store) };
}

/** A URL of any scheme, even misspelt: text with a colon that does not begin like a path. */
const URL_LIKE = /^[^./].*:/;

/** Reports a store that is neither a path nor the URL of a PostgreSQL database. */
export function* storeDiagnostics({ manager: { store = '' } }: ManagerParts): Iterable<Diagnostic> {
  if (!URL_LIKE.test(store) || DATABASE_URL.test(store)) return;
  // The message omits the value, which may contain a password.
  const reason = 'is a URL, but not of a PostgreSQL database';
  const remedy =
    'write postgresql://USER@HOST/DATABASE, or the path of a file, which begins with ./ if it has a colon';
  yield { pointer: '/manager/store', reason, remedy };
}
