import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { markdownTable } from '../markdown.ts';

/** Rows below this share of the busy time are omitted. */
const MIN_SHARE = 0.02;

/**
 * Empties `directory`, and makes Node.js processes that start later write V8 profiles into it.
 *
 * @param environment is changed
 */
export async function recordProfiles(directory: string, environment: NodeJS.ProcessEnv): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const profiler = pathToFileURL(join(import.meta.dirname, 'profiler.ts')).href;
  environment.BENCH_PROFILES = directory;
  environment.NODE_OPTIONS = `${environment.NODE_OPTIONS ?? ''} --import=${profiler}`.trim();
}

/** Returns a table of the busy time of each program by package, by our own modules, and by functions of Node.js. */
export async function profileTables(directory: string): Promise<string> {
  const programs = new Map<string, Map<string, number>>();
  for (const file of (await readdir(directory)).toSorted()) {
    const program = file.replace(/\.[\d-]+\.cpuprofile$/, '');
    const profile = JSON.parse(await readFile(join(directory, file), 'utf8')) as Profiler.Profile;
    const places = programs.get(program) ?? new Map<string, number>();
    programs.set(program, places);
    addSelfTimes(profile, places);
  }
  return [...programs].map(([program, places]) => profileTable(program, places)).join('\n\n');
}

function profileTable(program: string, places: ReadonlyMap<string, number>): string {
  const busy = [...places.values()].reduce((sum, microseconds) => sum + microseconds, 0);
  const rows = [...places]
    .filter(([, microseconds]) => microseconds >= busy * MIN_SHARE)
    .toSorted(([, one], [, other]) => other - one)
    .map(([place, microseconds]) => [place, `${Math.round((microseconds / busy) * 100)} %`]);
  return markdownTable([`${program}, busy for ${(busy / 1e6).toFixed(1)} s`, 'of that'], rows);
}

/** Adds up the self time of each place, in microseconds. */
function addSelfTimes(
  { nodes, samples = [], timeDeltas = [] }: Profiler.Profile,
  places: Map<string, number>,
): void {
  const placeOfNode = new Map(nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  for (const [index, id] of samples.entries()) {
    const place = placeOfNode.get(id);
    if (place !== undefined) places.set(place, (places.get(place) ?? 0) + (timeDeltas[index] ?? 0));
  }
}

/** Returns the package or module of a frame, or the Node.js function; undefined while nothing runs. */
function placeOf({ functionName, url }: Profiler.ProfileNode['callFrame']): string | undefined {
  if (functionName === '(idle)' || functionName === '(root)') return undefined;
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (functionName === '(program)') return 'native code outside of functions';
  if (url === '' || url.startsWith('node:')) return `\`${functionName}\` of ${url || 'native code'}`;
  const [, dependency] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
  if (dependency !== undefined) return dependency;
  const [, name, file] = /\/packages\/([^/]+)\/(?:src|dist)\/(.*)\.[jt]s$/.exec(url) ?? [];
  return name === undefined ? url.replace(/^file:.*\//, '') : `${name}: ${file}`;
}
