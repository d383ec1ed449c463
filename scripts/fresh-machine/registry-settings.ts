import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { BaseSystem } from './base-system.ts';

/** npm settings for reaching registries. */
const NPM_KEYS = 'registry|proxy|https-proxy|noproxy|strict-ssl|cafile|ca(?:\\[\\])?|cert|key';
const NPM_LINE = new RegExp(`^\\s*(?://|@[^:]+:registry\\s*=|(?:${NPM_KEYS})\\s*=)`);

/** Environment variables for reaching registries, and variables that name a certificate file. */
const PROXIES = ['http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE'];

/** Directory for copies of certificate files in a machine. Debian's package rewrites its own bundle. */
const CERTIFICATE_DIRECTORY = '/etc/fresh-machine';

/** Returns the lines of an npmrc that configure access to registries. */
export function registryLines(npmrc: string): string[] {
  return npmrc.split('\n').filter((line) => NPM_LINE.test(line));
}

/**
 * Copies this machine's apt and npm registry settings to a machine.
 *
 * @param root - root directory of the machine
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
 * Returns apt sources for another suite of the same archive.
 *
 * @param sources - content of a sources file, in either of apt's formats
 */
export function sourcesOfSuite(
  sources: string,
  { suite, hostSuite }: Pick<BaseSystem, 'suite' | 'hostSuite'>,
): string {
  const word = new RegExp(`(?<=\\s)${hostSuite}(?=[-/\\s])`, 'g');
  return sources.replaceAll(/^(?:deb|Suites:).*/gm, (line) => `${line}\n`.replaceAll(word, suite).trimEnd());
}

/** Copies sources, keys, preferences and logins, and the apt configuration for fetching packages. */
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
  // Without a terminal, nobody can answer questions.
  const answer = 'APT::Get::Assume-Yes "true";\n';
  writeFileSync(join(root, 'etc/apt/apt.conf.d/90fresh-machine'), lines.join('\n') + answer);
}

/**
 * Copies npm settings. The last setting of a key takes precedence: user settings override global ones, and the
 * environment overrides both.
 */
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
