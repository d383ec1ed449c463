import { readFile, stat } from 'node:fs/promises';
import { readBounded } from '@nodepool-builder/image-builder/internal';
import { cloudError, HttpAgent, responseMeter } from '@nodepool-builder/image-builder/plugin';
import {
  type AuthClient,
  AwsClient,
  GoogleAuth,
  type GoogleAuthOptions,
  type gaxios,
  IdentityPoolClient,
  JWT,
  PluggableAuthClient,
  UserRefreshClient,
} from 'google-auth-library';

type GaxiosOptions = gaxios.GaxiosOptions;
type GaxiosOptionsPrepared = gaxios.GaxiosOptionsPrepared;
type GaxiosResponse<T> = gaxios.GaxiosResponse<T>;

/** Token endpoint of the library, which ignores the key's `token_uri`. */
const TOKEN_ENDPOINT = 'https://oauth2.googleapis.com/token';

/** Time limit of a token request, in milliseconds. */
const TOKEN_TIME = 60_000;

/** Time limit of one object upload request, which sends up to 8 MiB, in milliseconds. */
const CHUNK_TIME = 300_000;

const TRANSPORT = { transporterOptions: { timeout: TOKEN_TIME } };

const SCOPES = ['https://www.googleapis.com/auth/cloud-platform'];

/** Credential types that this class leaves to the library. */
const OF_LIBRARY: ReadonlySet<string> = new Set([
  'impersonated_service_account',
  'external_account_authorized_user',
  'gdch_service_account',
]);

/**
 * Credentials from a file, or the application default credentials. The library would use what it has read for the
 * lifetime of the process. This class reads a file again once it has changed, even between two requests of an upload.
 */
export class GceCredentials extends GoogleAuth {
  readonly #path: string | undefined;
  readonly #subject: string;
  readonly #agent = new HttpAgent({ keepAlive: true });
  #version: string | undefined;
  #reading: Promise<void> | undefined;

  /** @param subject subject of errors: `provider gce` */
  constructor(path: string | undefined, options: GoogleAuthOptions = {}, subject = 'Compute Engine') {
    super({ ...options, scopes: SCOPES });
    this.#path = path;
    this.#subject = subject;
  }

  /** @throws CloudError */
  override async getClient(): Promise<AuthClient> {
    if (this.#path !== undefined) {
      this.#reading ??= this.#read(this.#path).finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    const client = await super.getClient();
    client.transporter.defaults.agent = this.#agent;
    return client;
  }

  override async request<T>(options: GaxiosOptions): Promise<GaxiosResponse<T>> {
    await this.#renewToken();
    return await super.request<T>({ timeout: CHUNK_TIME, ...options });
  }

  /** Rejects a response that is not JSON, such as a proxy's page, and limits how much the SDK reads into memory. */
  override async fetch<T>(...args: Parameters<AuthClient['fetch']>): Promise<GaxiosResponse<T>> {
    await this.#renewToken();
    const meter = responseMeter(this.#subject);
    const response = await super.fetch<T>(...args);
    const { body: stream, ok: isSuccess, status } = response;
    const arrayBuffer = async (): Promise<Uint8Array> => {
      const body = await readBounded((stream ?? []) as unknown as AsyncIterable<Uint8Array>, meter);
      if (!isSuccess || status === 204 || /^\s*\{/.test(body.toString('latin1', 0, 100))) return body;
      throw cloudError('invalid-response', this.#subject, 'the response is not JSON from Compute Engine');
    };
    return Object.assign(response, { arrayBuffer });
  }

  /** Reads the credentials again before the next request. */
  forget(): void {
    this.#version = undefined;
    if (this.#path === undefined) this.cachedCredential = null;
  }

  /**
   * Requests a token if there is none. Converts a 404 from the token endpoint, so that it does not look like a missing
   * resource.
   */
  async #renewToken(): Promise<void> {
    const client = await this.getClient();
    await client.getAccessToken().catch((error: Error & { readonly status?: number }) => {
      if (error.status !== 404) throw error;
      const reason = `the token server responds with status 404: ${error.message}`;
      throw cloudError('auth-failed', this.#subject, reason);
    });
  }

  async #read(path: string): Promise<void> {
    const version = await versionOf(path);
    if (version !== undefined && version === this.#version) return;
    try {
      this.cachedCredential = await this.#clientOf(path);
      this.#version = version;
    } catch (error) {
      // The earlier credentials stay in use while the file is being replaced.
      if (this.cachedCredential === null) throw error;
    }
  }

  /** Creates a client for the credential types that the library itself reads, without its warnings. */
  async #clientOf(path: string): Promise<AuthClient> {
    const file = parseCredentials(path, await readFile(path, 'utf8').catch((error: unknown) => error));
    const { type, client_email: email, private_key: key, credential_source: source } = file;
    if (type === 'service_account' && email && key) {
      const { project_id: projectId, token_uri: endpoint } = file;
      const client = new JWT({ ...TRANSPORT, email, key, scopes: SCOPES, ...(projectId && { projectId }) });
      if (endpoint) client.transporter.interceptors.request.add({ resolved: redirectTo(new URL(endpoint)) });
      return client;
    }
    if (type === 'authorized_user') {
      const { client_id: clientId, client_secret: clientSecret, refresh_token: refreshToken } = file;
      const quota = file.quota_project_id && { quotaProjectId: file.quota_project_id };
      return new UserRefreshClient({ ...TRANSPORT, ...quota, clientId, clientSecret, refreshToken } as never);
    }
    if (type === 'external_account') {
      const Client = source?.environment_id?.startsWith('aws')
        ? AwsClient
        : source?.executable === undefined
          ? IdentityPoolClient
          : PluggableAuthClient;
      return new Client({ ...TRANSPORT, ...file, scopes: SCOPES } as never);
    }
    if (type !== undefined && OF_LIBRARY.has(type)) {
      // The library's constructors for them print warnings, which this method of its default credentials does not.
      // oxlint-disable-next-line no-underscore-dangle -- it is the name in the library
      return await this._getApplicationCredentialsFromFilePath(path).catch((error: unknown) => {
        // A JSON.parse message would quote the file.
        const reason = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message;
        throw cloudError('bad-request', 'credentials', `"${path}" cannot be used: ${reason}`);
      });
    }
    const reason = `"${path}" contains credentials of type "${type}" or is incomplete; use a service account key, or workload identity federation`;
    throw cloudError('bad-request', 'credentials', reason);
  }
}

interface CredentialsFile {
  readonly type?: string;
  readonly client_email?: string;
  readonly private_key?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly refresh_token?: string;
  readonly project_id?: string;
  readonly token_uri?: string;
  readonly quota_project_id?: string;
  readonly credential_source?: { readonly environment_id?: string; readonly executable?: object };
}

/** Redirects token requests to another endpoint. */
function redirectTo(endpoint: URL): (request: GaxiosOptionsPrepared) => Promise<GaxiosOptionsPrepared> {
  return async (request) => {
    if (request.url.href === TOKEN_ENDPOINT) request.url = endpoint;
    return request;
  };
}

/**
 * Returns a value that changes with each write to a file, and when the file is replaced. Undefined if the file cannot
 * be found.
 */
async function versionOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/** Parses a credentials file. Errors never quote the file, which contains secrets. */
function parseCredentials(path: string, text: unknown): CredentialsFile {
  if (typeof text !== 'string') {
    const { message } = Object(text) as Error;
    throw cloudError('bad-request', 'credentials', `"${path}" cannot be read: ${message}`);
  }
  try {
    return Object(JSON.parse(text)) as CredentialsFile;
  } catch {
    throw cloudError('bad-request', 'credentials', `"${path}" is not JSON`);
  }
}
