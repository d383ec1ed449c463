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
 * @param proxyEnv `https_proxy`, `http_proxy` and `no_proxy`, as in an environment. Node takes it from 22.21 on.
 * @throws OpenStackError `invalid-settings`: a file of the TLS settings cannot be read or used.
 */
export async function createAgents(
  { name, tls }: CloudSettings,
  proxyEnv: Readonly<Record<string, string | undefined>> = {},
): Promise<Agents> {
  const read = async (path: string | undefined, key: string): Promise<Buffer | undefined> => {
    try {
      return path === undefined ? undefined : await readFile(path);
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new OpenStackError(
        'invalid-settings',
        `cloud ${name}: ${key}: ${reason}; correct it in clouds.yaml`,
        {
          cause,
        },
      );
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
    const reason = (cause as Error).message;
    throw new OpenStackError(
      'invalid-settings',
      `cloud ${name}: cacert, cert and key cannot be used: ${reason}; they must be PEM files that belong together`,
      { cause },
    );
  }
}
