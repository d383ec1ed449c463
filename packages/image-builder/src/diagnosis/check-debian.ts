import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskImage } from '../disk-image.ts';
import type { CheckResult } from './check-result.ts';

/** The element that corrects diskimage-builder's errors. */
const FIXES = 'debian-fixes';

/** Releases that have the package `software-properties-common`. */
const RELEASES_WITH_PACKAGE = ['buster', 'bullseye', 'bookworm'];

const PACKAGE = 'software-properties-common';

/**
 * Checks that diskimage-builder can build a release of Debian. Its elements name suites and packages of the releases
 * that it supports.
 *
 * @param elements all elements of the disk image
 * @param dibElements directories of diskimage-builder's own elements
 * @returns undefined for an image that is not a Debian image
 */
export async function checkDebian(
  elements: ReadonlySet<string>,
  { name, release, envVars = {} }: DiskImage,
  dibElements: readonly string[],
): Promise<CheckResult | undefined> {
  if (!elements.has('debian-minimal')) return undefined;
  const suite = `${release || 'stable'}`;
  const result = { area: 'configuration', subject: `diskimage-builder for Debian ${suite}` } as const;
  if (elements.has(FIXES)) return { ...result, status: 'ok', message: `has the element ${FIXES}` };
  const variables = Object.entries({ ...process.env, ...envVars, DIB_RELEASE: suite });
  const problems: string[] = [];
  for (const directory of dibElements) {
    const sources = await aptSources(join(directory, 'debian-minimal'), variables);
    if (sources.includes(` ${suite}/updates `)) problems.push(`it requests the suite ${suite}/updates`);
    const tools = join(directory, 'base/pre-install.d/03-baseline-tools');
    const script = await readFile(tools, 'utf8').catch(() => '');
    if (script.includes(PACKAGE) && !RELEASES_WITH_PACKAGE.includes(suite))
      problems.push(`it installs the package ${PACKAGE}`);
  }
  if (problems.length === 0) return { ...result, status: 'ok', message: 'supports the release' };
  const message = `${problems.join(', and ')}, which Debian does not have`;
  const remedy = `add ${FIXES} to the elements of disk image ${name}: it comes with nodepool-builder`;
  return { ...result, status: 'problem', message, remedy };
}

/** Returns the apt sources that the element debian-minimal writes. */
async function aptSources(
  element: string,
  variables: readonly (readonly [string, unknown])[],
): Promise<string> {
  const { execa } = await import('execa'); // imported on demand, as in process/command.ts
  const script = 'set -eu; source "$1"; printf "%s\\n" "$DIB_APT_SOURCES_CONF"';
  const file = join(element, 'environment.d/10-debian-minimal.bash');
  // Bash runs the contents of BASH_ENV and some other variables.
  const own = variables.filter(([name, value]) => name.startsWith('DIB_') && typeof value === 'string');
  const { stdout, failed } = await execa('bash', ['-c', script, 'bash', file], {
    env: Object.fromEntries(own) as Record<string, string>,
    extendEnv: false,
    stdin: 'ignore',
    reject: false,
    timeout: 10_000,
    maxBuffer: 2 ** 20,
  });
  return failed ? '' : stdout;
}
