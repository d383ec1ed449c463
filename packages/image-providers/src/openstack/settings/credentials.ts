import { type Mapping, mappingAt } from './mapping.ts';
import type { NodepoolCredentials } from './settings-request.ts';

/** If one of these stands in `auth` and beside it, the one in `auth` counts. */
const INSIDE_FIRST = [
  'auth_url',
  'endpoint',
  'user_id',
  'username',
  'password',
  'default_domain_id',
  'default_domain_name',
  'system_scope',
  'trust_id',
  'application_credential_id',
  'application_credential_name',
  'application_credential_secret',
] as const;

/**
 * If one of these stands in `auth` and beside it, the one beside it counts: it may be a region's. It is openstacksdk's
 * rule since 2.0; in `auth` it counted before.
 */
const OUTSIDE_FIRST = [
  'token',
  'project_id',
  'project_name',
  'domain_id',
  'domain_name',
  'user_domain_id',
  'user_domain_name',
  'project_domain_id',
  'project_domain_name',
] as const;

/** What authentication may need, by the names of today. */
export type CredentialName = (typeof INSIDE_FIRST)[number] | (typeof OUTSIDE_FIRST)[number];

/** Values for authentication as the settings have them; nothing in it is null or empty. */
export type Credentials = Readonly<Partial<Record<CredentialName, unknown>>>;

const OLDER_NAMES: Readonly<Partial<Record<CredentialName, string>>> = {
  endpoint: 'url',
  username: 'user_name',
  token: 'auth_token',
  project_id: 'tenant_id',
  project_name: 'tenant_name',
};

/** Gathers what authentication may need from a cloud, from its `auth`, and from the provider, which wins. */
export function credentialsOf(cloud: Mapping, provider: NodepoolCredentials): Credentials {
  const inside = mappingAt(cloud, 'auth');
  const found: Partial<Record<CredentialName, unknown>> = {};
  for (const name of INSIDE_FIRST) {
    const older = OLDER_NAMES[name] ?? name;
    found[name] = firstSet(inside[name], inside[older], cloud[name], cloud[older]);
  }
  for (const name of OUTSIDE_FIRST) {
    const older = OLDER_NAMES[name] ?? name;
    found[name] = firstSet(cloud[name], inside[name], cloud[older], inside[older]);
  }
  return withDomainsSpread({
    ...found,
    auth_url: firstSet(provider.authUrl, found.auth_url),
    username: firstSet(provider.username, found.username),
    password: firstSet(provider.password, found.password),
    project_id: firstSet(provider.projectId, found.project_id),
    project_name: firstSet(provider.projectName, found.project_name),
  });
}

function firstSet(...values: readonly unknown[]): unknown {
  return values.find((value) => value !== undefined && value !== null && value !== '');
}

/** `domain_*` beside a project means the user's and the project's domain; without a project it is the scope. */
function withDomainsSpread({ domain_id, domain_name, ...found }: Credentials): Credentials {
  if (found.project_id === undefined && found.project_name === undefined) {
    return { ...found, domain_id, domain_name };
  }
  return {
    ...found,
    user_domain_id: found.user_domain_id ?? domain_id,
    project_domain_id: found.project_domain_id ?? domain_id,
    user_domain_name: found.user_domain_name ?? domain_name,
    project_domain_name: found.project_domain_name ?? domain_name,
  };
}
