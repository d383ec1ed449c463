import { access, constants, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { ObjectSchema } from '@nodepool-builder/image-builder';
import { type DiskImageEntry, settingsOf } from './disk-images.ts';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { programPath } from './program-path.ts';
import { moduleOf } from './provider.ts';
import type { ProviderModules } from './provider-schema.ts';
import { isMapping } from './scalar.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import { hookWords } from './validation.ts';
import type { YamlDocument } from './yaml-document.ts';

type Absolute = (path: string) => string;

/** A directory or a program that has to be on the host, and the key that names it. */
interface Needed {
  readonly pointer: string;
  readonly path: string;
  readonly kind: 'directory' | 'program';
  /** Search path for a program without a slash. Default: PATH of this process. */
  readonly searchPath?: string;
}

/** Modules of providers, disk images, and the resolution of relative paths. */
interface HostOptions {
  readonly modules: ProviderModules;
  readonly entries: readonly DiskImageEntry[];
  readonly absolute: Absolute;
}

/**
 * Warns of directories and programs that this host lacks. Another host may have them, such as the one that builds.
 *
 * @param source without errors
 */
export async function hostFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  { modules, entries, absolute }: HostOptions,
): Promise<readonly Fault[]> {
  // A need of several entries is reported once, for the first of them.
  const needed = Map.groupBy(needs(source, { modules, entries, absolute }), keyOf).values();
  const findings = await Promise.all([...needed].map(async ([first]) => first && (await missing(first))));
  return findings
    .filter((finding) => finding !== undefined)
    .map((finding) => toFault(document, { ...finding, severity: 'warning' }));
}

function keyOf({ kind, path, searchPath = '' }: Needed): string {
  return JSON.stringify([kind, path, searchPath]);
}

function* needs(source: ConfigurationSource, { modules, entries, absolute }: HostOptions): Iterable<Needed> {
  const directory = (pointer: string, path: string): Needed => ({
    pointer,
    path: absolute(path),
    kind: 'directory',
  });
  yield directory('/images-dir', source['images-dir']);
  for (const path of source['elements-dir']?.split(':') ?? []) yield directory('/elements-dir', path);
  if (source['script-dir']) yield directory('/script-dir', source['script-dir']);
  for (const entry of entries) yield* diskImageNeeds(entry, absolute);
  for (const [index, provider] of (source.providers ?? []).entries()) {
    const pointer = `/providers/${index}`;
    const { 'post-upload-hook': hook } = provider;
    const { properties }: ObjectSchema = moduleOf(provider, modules).settings;
    for (const [key, { format }] of Object.entries(properties)) {
      const path = provider[key];
      if (format === 'directory' && typeof path === 'string') yield directory(`${pointer}/${key}`, path);
    }
    if (hook !== undefined) {
      yield { pointer: `${pointer}/post-upload-hook`, path: programPath(hook, absolute), kind: 'program' };
    }
  }
}

function* diskImageNeeds({ pointer, source, module }: DiskImageEntry, absolute: Absolute): Iterable<Needed> {
  if (source.abstract || module === undefined) return;
  const { 'env-vars': variables } = source;
  const searchPath = isMapping(variables) && typeof variables.PATH === 'string' ? variables.PATH : undefined;
  for (const { pointer: key, program } of module.programs?.(settingsOf(source, module, { absolute })) ?? []) {
    const needed = { pointer: pointer + key, path: program, kind: 'program' } as const;
    yield searchPath === undefined ? needed : { ...needed, searchPath };
  }
  yield* validationNeeds(source, pointer, absolute);
}

function* validationNeeds(
  { validate }: Pick<DiskImageSource, 'validate'>,
  pointer: string,
  absolute: Absolute,
): Iterable<Needed> {
  const [hook] = validate?.hook === undefined ? [] : hookWords(validate.hook);
  if (hook) yield { pointer: `${pointer}/validate/hook`, path: programPath(hook, absolute), kind: 'program' };
}

async function missing(needed: Needed): Promise<Finding | undefined> {
  const { pointer, path, kind } = needed;
  const reason = kind === 'directory' ? await directoryFault(path) : await programFault(needed);
  if (reason === undefined) return undefined;
  const remedy = kind === 'directory' ? 'create it, or name another one' : 'install it, or name another one';
  return { pointer, reason: `needs ${kind} "${path}", which ${reason}`, remedy };
}

async function directoryFault(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : 'is no directory';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'does not exist on this host' : `cannot be read: ${message}`;
  }
}

async function programFault({
  path,
  searchPath = process.env.PATH ?? '',
}: Needed): Promise<string | undefined> {
  const candidates = path.includes('/')
    ? [path]
    : searchPath.split(delimiter).map((place) => join(place, path));
  const codes = await Promise.all(candidates.map(executionError));
  if (codes.includes(undefined)) return undefined;
  return codes.includes('EACCES') ? 'may not be executed' : 'is not installed on this host, or not on PATH';
}

/** The system's code for a file that cannot be executed. */
async function executionError(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile() ? undefined : 'EACCES';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
