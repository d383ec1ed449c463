import type { Logger } from '@nodepool-builder/image-builder';
import type { RetryPolicy } from '@nodepool-builder/image-builder/module-kit';
import type { CloudAuth } from '../cloud-settings.ts';
import { OpenStackError } from '../openstack-error.ts';
import { logRetries } from './authenticated-client.ts';
import { configuredIdentityApi, type IdentityApi, listedIdentityApi } from './keystone-discovery.ts';
import { v2Exchange } from './keystone-v2.ts';
import { v3Exchange } from './keystone-v3.ts';
import { settingsUrl } from './settings-url.ts';
import type { Token } from './token.ts';
import type { HttpRequest, Transport } from './transport.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

/** Keystone: issues tokens for the credentials of the settings. */
export class Keystone {
  readonly #auth: KeystoneAuth;
  readonly #transport: Transport;
  readonly #retries: RetryPolicy;
  readonly #logger: Logger;
  #api: IdentityApi | undefined;

  constructor(auth: KeystoneAuth, transport: Transport, retries: RetryPolicy, logger: Logger) {
    this.#auth = auth;
    this.#transport = transport;
    this.#retries = retries;
    this.#logger = logger;
    this.#api = configuredIdentityApi(auth);
  }

  /**
   * A new token.
   *
   * @throws OpenStackError `auth-failed`; `invalid-settings` if there is no Keystone at `auth_url`; what any request
   *   may throw.
   */
  async issue(signal: AbortSignal): Promise<Token> {
    return await this.#retries.run(
      async () => {
        this.#api ??= await this.#discover(signal);
        return await this.#authenticate(this.#api, signal);
      },
      { signal, onRetry: logRetries(this.#logger, this.#retries) },
    );
  }

  async #discover(signal: AbortSignal): Promise<IdentityApi> {
    const url = settingsUrl(this.#transport.cloud, 'auth_url', this.#auth.url);
    const request: HttpRequest = { method: 'GET', url, signal };
    const answer = await this.#transport.send(request);
    // 300: there are several versions
    const refusal = answer.status > 300 ? this.#transport.refusal(request, answer) : undefined;
    if (refusal?.retriable) throw refusal;
    const api =
      refusal === undefined
        ? this.#transport.parse(request, answer, (body) => listedIdentityApi(this.#auth, body))
        : undefined;
    if (api !== undefined) return api;
    throw new OpenStackError(
      'invalid-settings',
      `cloud ${this.#transport.cloud}: Keystone lists no version that fits at ${url.origin}${url.pathname}; correct auth_url in clouds.yaml, or write it with its version (/v3)`,
      { cause: refusal, status: answer.status },
    );
  }

  async #authenticate(api: IdentityApi, signal: AbortSignal): Promise<Token> {
    const { path, body, read } = api.version === 2 ? v2Exchange(this.#auth) : v3Exchange(this.#auth);
    const request: HttpRequest = {
      method: 'POST',
      url: settingsUrl(this.#transport.cloud, 'auth_url', `${api.url}${path}`),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    };
    const answer = await this.#transport.send(request);
    if (answer.status >= 300) throw this.#transport.refusal(request, answer);
    const now = this.#transport.clock.now();
    return this.#transport.parse(request, answer, (value) => read({ headers: answer.headers, value, now }));
  }
}
