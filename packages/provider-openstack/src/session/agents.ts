import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { CloudSettings } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';

/** Agents for the connections to a cloud. */
export interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * Each request uses a new connection. On a connection that the server is closing, the error would not tell whether the
 * request had an effect.
 *
 * @param proxyEnv `https_proxy`, `http_proxy` and `no_proxy`, as in an environment
 * @throws OpenStackError `invalid-settings`: a file of the TLS settings cannot be read or used
 */
export async function createAgents(
  { name, tls }: CloudSettings,
  proxyEnv: Readonly<Record<string, string | undefined>> = {},
): Promise<Agents> {
  const invalid = (what: string, cause: unknown, remedy: string): OpenStackError => {
    const reason = (cause as Error).message;
    return new OpenStackError('invalid-settings', `cloud ${name}: ${what}: ${reason}; ${remedy}`, { cause });
  };
  const read = async (path: string | undefined, key: string): Promise<Buffer | undefined> => {
    try {
      return path === undefined ? undefined : await readFile(path);
    } catch (cause) {
      throw invalid(key, cause, 'correct it in clouds.yaml');
    }
  };
  const ca = await read(tls.caFile, 'cacert');
  const cert = await read(tls.certFile, 'cert');
  const key = (await read(tls.keyFile, 'key')) ?? cert;
  try {
    const secureContext = createSecureContext({ ca, cert, key });
    const common = { keepAlive: false, proxyEnv: { ...proxyEnv } };
    return {
      http: new HttpAgent(common),
      https: new HttpsAgent({ ...common, secureContext, rejectUnauthorized: tls.verify }),
    };
  } catch (cause) {
    throw invalid(
      'cacert, cert and key cannot be used',
      cause,
      'they must be PEM files that belong together',
    );
  }
}
