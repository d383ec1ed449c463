import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../../scripts/free-port.ts';
import { type CertificateFiles, createAuthority } from '../../../test/fixtures/certificate-authority.ts';
import { end } from '../../../test/fixtures/job-server-process.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';

/** The only user, and the password in htpasswd's format. */
export const USER = 'builder';
export const PASSWORD = 'correct-horse-battery';
const PASSWORD_HASH = '$2y$04$abcdefghijklmnopqrstuupOWRSKKNe562z1DsLEArFuJDHVyRIMa';

/** Debian's docker-registry on loopback, with TLS, and with one user or a token service. */
export interface DockerRegistry {
  /** `127.0.0.1:port`. */
  readonly host: string;
  /** Path of the authority's certificate. */
  readonly caFile: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Lines of the log. */
  readonly log: readonly string[];
}

/** A token service, and the certificate that signs its tokens. */
export interface TokenAuth {
  readonly realm: string;
  readonly service: string;
  readonly issuer: string;
  readonly certificate: string;
}

/**
 * Starts a registry in a directory.
 *
 * @param auth default: htpasswd. `none`: it requires no credentials, and does not use TLS
 * @param permitsDeletions default true
 */
export async function startRegistry(
  directory: string,
  auth?: TokenAuth | 'none',
  permitsDeletions = true,
): Promise<DockerRegistry> {
  await mkdir(directory, { recursive: true });
  const authority = await createAuthority(join(directory, 'authority'));
  const { cert, key }: CertificateFiles = await authority.issue('registry', '127.0.0.1');
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const configuration = join(directory, 'registry.json');
  await writeFile(join(directory, 'htpasswd'), `${USER}:${PASSWORD_HASH}\n`);
  await writeFile(
    configuration,
    // JSON is also YAML.
    JSON.stringify({
      version: 0.1,
      log: { level: 'info' },
      storage: {
        filesystem: { rootdirectory: join(directory, 'data') },
        delete: { enabled: permitsDeletions },
      },
      http: {
        addr: host,
        secret: 'of-the-locations',
        ...(auth === 'none'
          ? { relativeurls: true }
          : { host: `https://${host}`, tls: { certificate: cert, key } }),
      },
      ...(auth !== 'none' && {
        auth:
          auth === undefined
            ? { htpasswd: { realm: 'registry', path: join(directory, 'htpasswd') } }
            : { token: { ...auth, rootcertbundle: auth.certificate, certificate: undefined } },
      }),
    }),
  );
  const log: string[] = [];
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    // Ends with this process, even after SIGKILL.
    const registry = spawn('setpriv', ['--pdeathsig=TERM', 'docker-registry', 'serve', configuration], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = registry;
    const begin = log.length;
    createInterface(registry.stderr).on('line', (line) => log.push(line));
    await once(child, 'spawn');
    await waitUntil('docker-registry to listen', () => {
      if (child.exitCode !== null) throw new Error(`docker-registry ended: ${log.join('\n')}`);
      return log.slice(begin).some((line) => line.includes('listening on'));
    });
  };
  await start();
  return { host, caFile: authority.ca, log, start, kill: async () => await end(child, 'SIGKILL') };
}

export async function removeRegistry(registry: DockerRegistry, directory: string): Promise<void> {
  await registry.kill();
  await rm(directory, { recursive: true, force: true });
}
