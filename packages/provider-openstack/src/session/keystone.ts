import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { KeystoneAuth } from '../cloud-settings.ts';
import { settingsUrl } from './catalog.ts';
import { configuredIdentityApi, type IdentityApi, listedIdentityApi } from './keystone-discovery.ts';
import { type Token, V2, V3 } from './token-request.ts';
import type { Transport } from './transport.ts';

/** Issues Keystone tokens for the credentials of the settings. */
export class Keystone {
  readonly #auth: KeystoneAuth;
  readonly #transport: Transport;
  #api: IdentityApi | undefined;

  constructor(auth: KeystoneAuth, transport: Transport) {
    this.#auth = auth;
    this.#transport = transport;
    this.#api = configuredIdentityApi(auth);
  }

  /**
   * Issues a token.
   *
   * @throws CloudError `auth-failed`; `invalid-settings` if `auth_url` does not lead to Keystone
   */
  async issue(signal: AbortSignal): Promise<Token> {
    return await this.#transport.retry(signal, async () => {
      this.#api ??= await this.#discover(signal);
      return await this.#authenticate(this.#api, signal);
    });
  }

  async #discover(signal: AbortSignal): Promise<IdentityApi> {
    const url = settingsUrl(this.#transport.cloud, 'auth_url', this.#auth.url);
    const request = { method: 'GET', url, signal } as const;
    const response = await this.#transport.send(request);
    // 300 Multiple Choices lists the versions.
    const error = response.status > 300 ? this.#transport.responseError(request, response) : undefined;
    if (error?.retriable) throw error;
    const api =
      error === undefined
        ? this.#transport.parse(request, response, (body) => listedIdentityApi(this.#auth, body))
        : undefined;
    if (api !== undefined) return api;
    throw new CloudError(
      'invalid-settings',
      `cloud ${this.#transport.cloud}: Keystone lists no usable version at ${url.origin}${url.pathname}; correct auth_url in clouds.yaml, or append the version (/v3)`,
      { cause: error, status: response.status },
    );
  }

  async #authenticate(api: IdentityApi, signal: AbortSignal): Promise<Token> {
    const { path, body, read } = api.version === 2 ? V2 : V3;
    const request = {
      method: 'POST',
      url: settingsUrl(this.#transport.cloud, 'auth_url', `${api.url}${path}`),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body(this.#auth)),
      signal,
    } as const;
    const response = await this.#transport.send(request);
    if (response.status >= 300) {
      const cause = this.#transport.responseError(request, response);
      if (cause.code !== 'not-found') throw cause;
      // A 404 from a wrong auth_url must not look like a missing resource.
      const message = `${cause.message}; correct auth_url in clouds.yaml`;
      throw new CloudError('invalid-settings', message, { cause });
    }
    const now = this.#transport.clock.now();
    return this.#transport.parse(request, response, (value) =>
      read({ headers: response.headers, value, now }),
    );
  }
}
