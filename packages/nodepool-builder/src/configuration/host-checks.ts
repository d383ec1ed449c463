import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Diagnostic, ObjectSchema } from '@nodepool-builder/image-builder';
import { findProgram, foreignPart, INSTALLATIONS } from '@nodepool-builder/image-builder/internal';
import { wordsOf } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import type { DiskImageEntry } from './disk-images.ts';
import { writtenPointer } from './inheritance.ts';
import type { SecureEnvVars } from './option-files.ts';
import type { ConfigurationParts } from './parts.ts';
import { PROVIDER_KEYS } from './provider-schema.ts';
import type { ConfigurationSource } from './schema.ts';
import { toValidation } from './validation.ts';

/** A directory or a program that the host needs, and the key that names it. */
interface Needed {
  readonly pointer: string;
  readonly path: string;
  readonly kind: 'directory' | 'program';
  /** Search path for a program without a slash. Default: PATH of this process. */
  readonly searchPath?: string;
}

/**
 * Warns about directories and programs that this host lacks, and returns the builders' diagnostics for this host.
 * Another host, such as the one that builds, may have them.
 *
 * @param written the file before inheritance, so that each error is reported where it is written
 */
export async function hostDiagnostics(
  parts: ConfigurationParts,
  written: ConfigurationSource,
  secure: SecureEnvVars,
): Promise<readonly Diagnostic[]> {
  const found = await Promise.all(distinctNeeds(parts).map(missing));
  const ofBuilders = await Array.fromAsync(builderDiagnostics(parts, written, secure));
  // Disk images that inherit an error share it.
  const distinct = new Map(ofBuilders.map((each) => [`${each.pointer} ${each.reason}`, each]));
  return [...found.filter((diagnostic) => diagnostic !== undefined), ...distinct.values()];
}

async function* builderDiagnostics(
  { diskimages, general }: ConfigurationParts,
  written: ConfigurationSource,
  secure: SecureEnvVars,
): AsyncGenerator<Diagnostic> {
  const { 'elements-dir': elementsDir } = general;
  for (const { name, pointer, source, module, values } of diskimages) {
    const words = Object.keys(values).filter((key) => module?.settings.properties[key]?.format === 'words');
    if (module?.checkHost === undefined || words.some((key) => wordsOf(values[key]) === undefined)) continue;
    const { 'env-vars': variables } = source;
    const envVars = { ...(isMapping(variables) && variables), ...secure.get(name) };
    for await (const found of module.checkHost(values, { envVars, ...(elementsDir && { elementsDir }) })) {
      yield { ...found, pointer: writtenPointer(written, pointer + found.pointer) };
    }
  }
}

/** Warns about programs and elements that another user can change, because this user would run that user's code. */
export function foreignCodeDiagnostics(parts: ConfigurationParts): readonly Diagnostic[] {
  return distinctNeeds(parts).flatMap(({ pointer, path, kind }) => {
    const isCode = kind === 'program' ? path.includes('/') : /^\/(?:elements|script)-dir$/.test(pointer);
    const foreign = isCode && existsSync(path) ? foreignPart(path) : undefined;
    if (foreign === undefined) return [];
    const reason = `names code that another user can change: ${foreign}`;
    return [{ pointer, severity: 'warning', reason, remedy: 'let only root and this user write there' }];
  });
}

/** Returns each need once, for the first entry that has it. */
function distinctNeeds(parts: ConfigurationParts): readonly Needed[] {
  const needed = Map.groupBy(needs(parts), ({ kind, path, searchPath = '' }) =>
    JSON.stringify([kind, path, searchPath]),
  ).values();
  return [...needed].flatMap(([first]) => first ?? []);
}

function* needs({ general, diskimages, providers, context }: ConfigurationParts): Iterable<Needed> {
  const { 'images-dir': imagesDir, 'elements-dir': elementsDir, 'script-dir': scriptDir } = general;
  yield { pointer: '/images-dir', path: imagesDir, kind: 'directory' };
  for (const path of elementsDir?.split(':') ?? [])
    yield { pointer: '/elements-dir', path, kind: 'directory' };
  if (scriptDir) yield { pointer: '/script-dir', path: scriptDir, kind: 'directory' };
  for (const entry of diskimages) yield* diskImageNeeds(entry, context.absolute);
  for (const { pointer, module, entry } of providers) {
    yield* settingNeeds({ ...module.settings.properties, ...PROVIDER_KEYS }, entry, pointer);
  }
}

/** Returns the directories and programs that keys name by their format. The pointer of a default is the entry's. */
function* settingNeeds(
  properties: ObjectSchema['properties'],
  values: Readonly<Record<string, unknown>>,
  pointer: string,
): Iterable<Needed> {
  for (const [key, { format: kind, default: standard }] of Object.entries(properties)) {
    if (kind !== 'directory' && kind !== 'program') continue;
    const [path] = [values[key]].flat();
    if (typeof path === 'string')
      yield { pointer: path === standard ? pointer : `${pointer}/${key}`, path, kind };
  }
}

function* diskImageNeeds(entry: DiskImageEntry, absolute: (path: string) => string): Iterable<Needed> {
  const { pointer, source, module, values } = entry;
  if (module === undefined) return;
  const { 'env-vars': variables, validate } = source;
  const searchPath = isMapping(variables) && typeof variables.PATH === 'string' ? variables.PATH : undefined;
  for (const needed of settingNeeds(module.settings.properties, values, pointer)) {
    yield searchPath === undefined ? needed : { ...needed, searchPath };
  }
  const [hook] = (validate && toValidation(validate, absolute).hook) ?? [];
  if (hook) yield { pointer: `${pointer}/validate/hook`, path: hook, kind: 'program' };
}

async function missing(needed: Needed): Promise<Diagnostic | undefined> {
  const { pointer, path, kind } = needed;
  const reason = kind === 'directory' ? await directoryProblem(path) : programProblem(needed);
  if (reason === undefined) return undefined;
  const remedy =
    kind === 'directory'
      ? 'create it, or name another one'
      : (INSTALLATIONS[path] ?? 'install it, or name another one');
  return { pointer, severity: 'warning', reason: `needs ${kind} "${path}", which ${reason}`, remedy };
}

async function directoryProblem(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? undefined : 'is not a directory';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'does not exist on this host' : `cannot be read: ${message}`;
  }
}

function programProblem({ path, searchPath = process.env.PATH }: Needed): string | undefined {
  const found = findProgram(path, searchPath);
  if ('path' in found) return undefined;
  return found.code === 'EACCES' ? 'is not executable' : 'is not installed on this host, or not on PATH';
}
