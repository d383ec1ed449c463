import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createAuthority } from '../../../test/fixtures/certificate-authority.ts';
import type { Credentials } from '../src/credentials.ts';
import { Registry } from '../src/registry.ts';

export const { signal: SIGNAL } = new AbortController();

export interface Opened {
  readonly registry: Registry;
  readonly url: string;
  /** Methods and paths of the requests so far. */
  readonly requests: string[];
}

/** Starts a server whose responses the test defines. */
export async function openRegistry(
  t: TestContext,
  listener: RequestListener,
  { isSecure = false, credentials }: { isSecure?: boolean; credentials?: Credentials } = {},
): Promise<Opened> {
  const requests: string[] = [];
  const record: RequestListener = (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    return listener(request, response);
  };
  let server: Server = createServer(record);
  let caFile: string | undefined;
  if (isSecure) {
    const directory = await mkdtemp(join(tmpdir(), 'oci-'));
    t.after(() => rm(directory, { recursive: true }));
    const authority = await createAuthority(join(directory, 'authority'));
    const { cert, key } = await authority.issue('registry', '127.0.0.1');
    server = createTlsServer({ cert: await readFile(cert), key: await readFile(key) }, record);
    caFile = authority.ca;
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${isSecure ? 'https' : 'http'}://${host}`;
  const registry = new Registry({
    name: 'ci',
    endpoint: new URL(url),
    repository: { host, path: 'ci/images' },
    credentials: async () => await Promise.resolve(credentials),
    caFile,
    retry: { attempts: 3, firstDelay: 0.001 },
  });
  return { registry, url, requests };
}
