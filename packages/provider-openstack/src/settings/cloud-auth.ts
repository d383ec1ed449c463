import type { AuthScope, CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import type { CredentialName, Credentials } from './credentials.ts';
import type { MergedCloud } from './merged-cloud.ts';
import { endpointOverride } from './services.ts';

/** The values of `auth_type` that are supported. */
const AUTH_TYPES: Readonly<Record<string, { type: CloudAuth['type']; version?: 2 | 3 }>> = {
  password: { type: 'password' },
  v2password: { type: 'password', version: 2 },
  v3password: { type: 'password', version: 3 },
  token: { type: 'token' },
  v2token: { type: 'token', version: 2 },
  v3token: { type: 'token', version: 3 },
  v3applicationcredential: { type: 'application-credential' },
  none: { type: 'none' },
  None: { type: 'none' },
};

/**
 * How a token is had, from the cloud's `auth_type` and its credentials.
 *
 * @throws OpenStackError `invalid-settings` for another `auth_type`, a missing value, or two scopes at once
 */
export function cloudAuth(cloud: MergedCloud, credentials: Credentials): CloudAuth {
  const named = cloud.text('auth_type') ?? cloud.text('auth_plugin') ?? 'password';
  const row = Object.hasOwn(AUTH_TYPES, named) ? AUTH_TYPES[named] : undefined;
  if (row === undefined) {
    const supported = Object.keys(AUTH_TYPES).filter((name) => name !== 'None');
    throw cloud.fault('its auth_type is not supported', `use one of ${supported.join(', ')}`);
  }
  const values = new CredentialReader(cloud, credentials);
  const version = row.version === undefined ? {} : { version: row.version };
  if (row.type === 'none') {
    return { type: 'none', endpoint: values.optional('endpoint') ?? imageEndpoint(cloud) };
  }
  const url = values.url();
  if (row.type === 'application-credential') {
    return { type: 'application-credential', url, ...values.applicationCredential() };
  }
  const scope = values.scope();
  if (row.type === 'token') return { type: 'token', url, token: values.required('token'), scope, ...version };
  return {
    type: 'password',
    url,
    user: values.user(),
    password: values.required('password'),
    scope,
    ...version,
  };
}

function imageEndpoint(cloud: MergedCloud): string {
  const endpoint = endpointOverride('image', cloud);
  if (endpoint !== undefined) return endpoint;
  throw cloud.fault('auth_type none leaves no way to find the services', 'add image_endpoint_override');
}

/** Credentials as the parts of a request for a token. */
class CredentialReader {
  readonly #cloud: MergedCloud;
  readonly #values: Credentials;

  constructor(cloud: MergedCloud, values: Credentials) {
    this.#cloud = cloud;
    this.#values = values;
  }

  optional(name: CredentialName): string | undefined {
    return this.#cloud.rawText(name, this.#values);
  }

  required(name: CredentialName): string {
    const value = this.optional(name);
    if (value !== undefined) return value;
    throw this.#cloud.fault(`${name} is missing`, `add it to "auth" of the cloud, or to the provider`);
  }

  url(): string {
    const url = this.#cloud.filledIn('auth_url', this.required('auth_url'));
    if (/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url;
    throw this.#cloud.fault('auth_url is no address', 'write one that begins with https:// or http://');
  }

  user(): NamedInDomain {
    const user = this.#named('user');
    if (user !== undefined) return user;
    throw this.#cloud.fault('username is missing', 'add it to "auth" of the cloud, or to the provider');
  }

  applicationCredential(): { secret: string } & ({ id: string } | { name: string; user: NamedInDomain }) {
    const secret = this.required('application_credential_secret');
    const id = this.optional('application_credential_id');
    if (id !== undefined) return { id, secret };
    const name = this.optional('application_credential_name');
    if (name !== undefined) return { name, user: this.user(), secret };
    throw this.#cloud.fault('application_credential_id is missing', 'add it to "auth" of the cloud');
  }

  scope(): AuthScope {
    const project = this.#named('project');
    const domain = this.#domainScope();
    const system = this.optional('system_scope');
    if (this.optional('trust_id') !== undefined) {
      throw this.#cloud.fault('trust_id is not supported', 'name a project');
    }
    if (system !== undefined && system !== 'all') {
      throw this.#cloud.fault('system_scope is unknown', 'write "all", or name a project');
    }
    if ([project, domain, system].filter((scope) => scope !== undefined).length > 1) {
      throw this.#cloud.fault('a token is for a project, a domain or the system', 'keep only one of them');
    }
    if (project !== undefined) return { project };
    if (domain !== undefined) return { domain };
    return system === undefined ? {} : { system };
  }

  #domainScope(): { id: string } | { name: string } | undefined {
    const id = this.optional('domain_id');
    if (id !== undefined) return { id };
    const name = this.optional('domain_name');
    return name === undefined ? undefined : { name };
  }

  /** By its id if there is one, else by its name and its domain; of the domain, too, the id comes first. */
  #named(kind: 'user' | 'project'): NamedInDomain | undefined {
    const id = this.optional(`${kind}_id`);
    if (id !== undefined) return { id };
    const name = this.optional(kind === 'user' ? 'username' : 'project_name');
    if (name === undefined) return undefined;
    for (const whose of [kind, 'default'] as const) {
      const domainId = this.optional(`${whose}_domain_id`);
      if (domainId !== undefined) return { name, domainId };
      const domainName = this.optional(`${whose}_domain_name`);
      if (domainName !== undefined) return { name, domainName };
    }
    return { name };
  }
}
