import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { BaseSystem } from './base-system.ts';

/** Settings of npm that say how registries are reached. */
const NPM_KEYS = 'registry|proxy|https-proxy|noproxy|strict-ssl|cafile|ca(?:\\[\\])?|cert|key';
const NPM_LINE = new RegExp(`^\\s*(?://|@[^:]+:registry\\s*=|(?:${NPM_KEYS})\\s*=)`);

/** Environment variables that say how registries are reached, and those that name a file of certificates. */
const PROXIES = ['http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE'];

/** Where a machine keeps copies of files of certificates. Debian's own bundle is rewritten by its package. */
const CERTIFICATE_DIRECTORY = '/etc/fresh-machine';

/** The lines of an npmrc that say how registries are reached. */
export function registryLines(npmrc: string): string[] {
  return npmrc.split('\n').filter((line) => NPM_LINE.test(line));
}

/**
 * Copies this machine's settings of the registries of apt and npm to a machine.
 *
 * @param root - the directory that is the machine's root
 * @param base - the machine's Debian
 * @returns the matching environment variables
 */
export function copyRegistrySettings(root: string, base: BaseSystem): Record<string, string> {
  copyAptSettings(root, base);
  mkdirSync(join(root, CERTIFICATE_DIRECTORY));
  const copyCertificates = (name: string, file: string): string => {
    const copy = join(CERTIFICATE_DIRECTORY, `${name}.pem`);
    writeFileSync(join(root, copy), readFileSync(file));
    return copy;
  };
  copyNpmSettings(root, copyCertificates);
  const environment: Record<string, string> = {};
  for (const name of PROXIES) if (process.env[name]) environment[name] = process.env[name];
  for (const name of CERTIFICATES) {
    if (process.env[name]) environment[name] = copyCertificates(name, process.env[name]);
  }
  return environment;
}

/**
 * Apt sources for another suite of the same archive.
 *
 * @param sources - content of a file of sources, in either of apt's formats
 */
export function sourcesOfSuite(
  sources: string,
  { suite, hostSuite }: Pick<BaseSystem, 'suite' | 'hostSuite'>,
): string {
  const word = new RegExp(`(?<=\\s)${hostSuite}(?=[-/\\s])`, 'g');
  return sources.replaceAll(/^(?:deb|Suites:).*/gm, (line) => `${line}\n`.replaceAll(word, suite).trimEnd());
}

/** Copies sources, keys, preferences and logins, and the part of the configuration about fetching packages. */
function copyAptSettings(root: string, base: BaseSystem): void {
  for (const name of readdirSync('/etc/apt')) {
    if (name === 'apt.conf' || name === 'apt.conf.d') continue;
    cpSync(join('/etc/apt', name), join(root, 'etc/apt', name), { recursive: true });
  }
  for (const file of globSync('etc/apt/{sources.list,sources.list.d/*.{list,sources}}', { cwd: root })) {
    writeFileSync(join(root, file), sourcesOfSuite(readFileSync(join(root, file), 'utf8'), base));
  }
  if (existsSync('/usr/share/keyrings')) {
    cpSync('/usr/share/keyrings', join(root, 'usr/share/keyrings'), { recursive: true });
  }
  const dump = execFileSync('apt-config', ['dump', '--no-empty', 'Acquire'], { encoding: 'utf8' });
  const lines = dump
    .split('\n')
    .filter((line) => !/^Acquire::(?:IndexTargets|Changelogs|cdrom)\b/.test(line));
  // Without a terminal nothing can answer questions.
  const answer = 'APT::Get::Assume-Yes "true";\n';
  writeFileSync(join(root, 'etc/apt/apt.conf.d/90fresh-machine'), lines.join('\n') + answer);
}

/** The last setting of a key wins: the user's comes after the global one, and the environment's after both. */
function copyNpmSettings(root: string, copyCertificates: (name: string, file: string) => string): void {
  const { npm_config_globalconfig: globalFile, npm_config_userconfig: userFile } = process.env;
  const files = [globalFile, userFile ?? join(homedir(), '.npmrc')];
  const texts = files.map((file) =>
    file !== undefined && existsSync(file) ? readFileSync(file, 'utf8') : '',
  );
  const variables = ['registry', 'proxy', 'https_proxy', 'noproxy', 'strict_ssl', 'cafile'].flatMap(
    (name) => {
      const value = process.env[`npm_config_${name}`];
      return value ? [`${name.replace('_', '-')}=${value}`] : [];
    },
  );
  const lines = [...texts.flatMap(registryLines), ...variables].map((line) => {
    const [, file] = /^\s*cafile\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return file === undefined ? line : `cafile=${copyCertificates('npm', file)}`;
  });
  mkdirSync(join(root, 'usr/local/etc'), { recursive: true });
  writeFileSync(join(root, 'usr/local/etc/npmrc'), `${lines.join('\n')}\n`);
}
