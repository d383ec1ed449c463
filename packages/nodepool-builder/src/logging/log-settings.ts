import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseYaml } from '../configuration/yaml-document.ts';
import { createAjv } from '../create-ajv.ts';

/** winston's levels, as far as this program writes them. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;

/** How loud a logger is. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Where log lines go, and which. */
export interface LogSettings {
  /** Of every logger that {@link loggers} does not name. */
  readonly level: LogLevel;
  /** Levels by name; a name also covers the names below it: `nodepool.image` covers `nodepool.image.build`. */
  readonly loggers: Readonly<Record<string, LogLevel | 'silent'>>;
  readonly outputs: readonly LogOutput[];
}

/** One place where log lines go. */
export type LogOutput =
  | { readonly type: 'stderr'; readonly format?: LogFormat }
  | {
      readonly type: 'file';
      readonly format?: LogFormat;
      readonly filename: string;
      /** Bytes after which the file is rotated. Without it, it grows. */
      readonly 'max-size'?: number;
      /** How many rotated files are kept. */
      readonly 'max-files'?: number;
    };

/** Lines for people (default), or an object a line for machines. */
export type LogFormat = 'text' | 'json';

/** What is in force without `-l`. */
export const DEFAULT_LOG_SETTINGS: LogSettings = {
  level: 'info',
  loggers: {},
  outputs: [{ type: 'stderr' }],
};

const LEVEL = { enum: LOG_LEVELS };
const FORMAT = { enum: ['text', 'json'] };

const validate = createAjv({ allErrors: true }).compile<Partial<LogSettings>>({
  type: 'object',
  additionalProperties: false,
  properties: {
    level: LEVEL,
    loggers: { type: 'object', additionalProperties: { enum: [...LOG_LEVELS, 'silent'] } },
    outputs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['type'],
        oneOf: [
          {
            properties: { type: { const: 'stderr' }, format: FORMAT },
            additionalProperties: false,
          },
          {
            properties: {
              type: { const: 'file' },
              format: FORMAT,
              filename: { type: 'string', minLength: 1 },
              'max-size': { type: 'integer', minimum: 1 },
              'max-files': { type: 'integer', minimum: 1 },
            },
            required: ['filename'],
            additionalProperties: false,
          },
        ],
      },
    },
  },
});

/**
 * Reads the file of `-l`. Relative file names in it count from its own directory.
 *
 * @throws Error that names the file, the fault and the remedy.
 */
export async function readLogSettings(path: string): Promise<LogSettings> {
  const text = await readFile(path, 'utf8');
  if (/^\s*\[/.test(text)) {
    throw new Error(
      `${path} is a Python logging configuration, which is not read; write level, loggers and outputs in YAML`,
    );
  }
  const { value } = parseYaml(text);
  if (!validate(value)) {
    const faults = (validate.errors ?? []).map(
      ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
    );
    throw new Error(`${path}: ${faults.join(', ')}; see docs/configuration.md for what may stand there`);
  }
  const settings = { ...DEFAULT_LOG_SETTINGS, ...value };
  const outputs = settings.outputs.map((output) =>
    output.type === 'file' ? { ...output, filename: resolve(dirname(path), output.filename) } : output,
  );
  return { ...settings, outputs };
}
