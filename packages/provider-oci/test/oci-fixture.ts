import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { findCredentials } from '../src/credentials.ts';
import { OciProvider } from '../src/oci-provider.ts';
import { endpointOf, OCI_SETTINGS, type OciEntry, parseRepository } from '../src/oci-settings.ts';
import { type DockerRegistry, PASSWORD, removeRegistry, startRegistry, USER } from './docker-registry.ts';

/** A registry, and everything that its providers need. */
export interface OciFixture {
  readonly registry: DockerRegistry;
  readonly directory: string;
  readonly repository: string;
  readonly authFile: string;
  /** Lines of all loggers. */
  readonly lines: string[];
  /** Opens a provider, like a process with this `images-dir`. */
  readonly open: (settings?: Partial<OciEntry>) => OciProvider;
}

export async function ociFixture(t: TestContext): Promise<OciFixture> {
  const directory = await mkdtemp(join(tmpdir(), 'oci-'));
  const registry = await startRegistry(join(directory, 'registry'));
  t.after(() => removeRegistry(registry, directory));
  const { host, caFile } = registry;
  const authFile = await writeAuthFile(directory, host);
  const lines: string[] = [];
  const repository = `${host}/ci/images`;
  const open = (settings: Partial<OciEntry> = {}): OciProvider =>
    openProvider({ repository, 'auth-file': authFile, 'ca-file': caFile, ...settings }, directory, lines);
  return { registry, directory, repository, authFile, lines, open };
}

/** Writes a login file like `podman login`. */
export async function writeAuthFile(
  directory: string,
  host: string,
  password: string = PASSWORD,
): Promise<string> {
  const path = join(directory, 'auth.json');
  const auth = Buffer.from(`${USER}:${password}`).toString('base64');
  await writeFile(path, JSON.stringify({ auths: { [host]: { auth } } }));
  return path;
}

export function openProvider(
  settings: Partial<OciEntry> & Pick<OciEntry, 'repository'>,
  directory: string,
  lines: string[] = [],
): OciProvider {
  const entry: OciEntry = {
    ...readSettings(OCI_SETTINGS, {}, (path) => path),
    name: 'ci',
    images: [],
    'chunk-size': 2 ** 20,
    ...settings,
  };
  const log = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const name = parseRepository(entry.repository);
  if (name === undefined) throw new Error(`wrong repository ${entry.repository}`);
  const files = entry['auth-file'] === undefined ? [] : [entry['auth-file']];
  return new OciProvider({
    entry,
    formats: ['qcow2', 'raw'],
    directory: join(directory, 'records'),
    registry: {
      repository: name,
      endpoint: endpointOf(entry, name),
      credentials: async () => await findCredentials(files, name, 'provider ci'),
      retry: { attempts: 3, firstDelay: 0.01 },
    },
    logger,
  });
}
