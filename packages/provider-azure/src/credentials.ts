import { readFile } from 'node:fs/promises';
import type { TokenCredential } from '@azure/identity';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { agentPolicy, type Policy } from './agent-policy.ts';
import type { AzureCloudName } from './azure-session.ts';

/** Token sources: values of `azure-credential`. */
export const CREDENTIAL_KINDS = [
  'default',
  'environment',
  'workload-identity',
  'managed-identity',
  'azure-cli',
  'azure-developer-cli',
  'azure-powershell',
] as const;

export interface CredentialSettings {
  readonly kind: (typeof CREDENTIAL_KINDS)[number];
  /** Absolute path of a service principal file, which replaces {@link kind}. */
  readonly authPath?: string | undefined;
  readonly tenantId?: string | undefined;
  /** Client id of the user-assigned managed identity or of the workload identity. */
  readonly clientId?: string | undefined;
  readonly cloud: AzureCloudName;
}

/** Microsoft Entra ID authority of each cloud. */
const AUTHORITIES: Readonly<Record<AzureCloudName, string>> = {
  public: 'https://login.microsoftonline.com',
  china: 'https://login.chinacloudapi.cn',
  'us-government': 'https://login.microsoftonline.us',
};

const TEXT = { type: 'string', minLength: 1 } as const;

/** File written by `az ad sp create-for-rbac`, with and without `--json-auth`. */
const AUTH_FILE = new JsonReader({
  type: 'object',
  properties: {
    clientId: TEXT,
    appId: TEXT,
    clientSecret: TEXT,
    password: TEXT,
    clientCertificate: TEXT,
    tenantId: TEXT,
    tenant: TEXT,
    subscriptionId: TEXT,
  },
} as const);

/** A service principal. */
export interface ServicePrincipal {
  readonly tenantId: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** Path of a PEM file with a certificate and its key. */
  readonly certificate?: string | undefined;
  readonly subscriptionId?: string | undefined;
}

/** Reads `auth-path`. @throws Error that does not quote the file */
export async function readServicePrincipal(path: string): Promise<ServicePrincipal> {
  try {
    const file = AUTH_FILE.parse(await readFile(path, 'utf8'));
    const [clientId, tenantId] = [file.clientId ?? file.appId, file.tenantId ?? file.tenant];
    const [clientSecret, certificate] = [file.clientSecret ?? file.password, file.clientCertificate];
    if (clientId === undefined || tenantId === undefined) throw new Error('it has no clientId and tenantId');
    if (clientSecret === undefined && certificate === undefined) throw new Error('it has no clientSecret');
    return { clientId, tenantId, clientSecret, certificate, subscriptionId: file.subscriptionId };
  } catch (error) {
    throw new Error(`auth-path "${path}" cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Creates a credential of `@azure/identity`, without sending a request. @throws Error */
export async function createCredential(settings: CredentialSettings): Promise<TokenCredential> {
  let failure: unknown;
  const policy = agentPolicy((error) => {
    failure = error;
  });
  const credential = await openCredential(settings, [{ policy, position: 'perCall' }]);
  return {
    getToken: async (...request) =>
      await credential.getToken(...request).catch((error: unknown) => {
        // The SDK reports only the kind of a network error.
        throw /\bnetwork_error\b/.test(String(error)) ? (failure ?? error) : error;
      }),
  };
}

type Policies = { readonly policy: Policy; readonly position: 'perCall' }[];

async function openCredential(
  settings: CredentialSettings,
  additionalPolicies: Policies,
): Promise<TokenCredential> {
  const identity = await import('@azure/identity');
  const { kind, authPath, tenantId, clientId, cloud } = settings;
  const authorityHost = AUTHORITIES[cloud];
  const options = { authorityHost, additionalPolicies };
  const common = { ...options, ...(tenantId !== undefined && { tenantId }) };
  if (authPath !== undefined) {
    const principal = await readServicePrincipal(authPath);
    const { clientSecret, certificate } = principal;
    return clientSecret === undefined
      ? new identity.ClientCertificateCredential(
          principal.tenantId,
          principal.clientId,
          certificate ?? '',
          options,
        )
      : new identity.ClientSecretCredential(principal.tenantId, principal.clientId, clientSecret, options);
  }
  switch (kind) {
    case 'default':
      return new identity.DefaultAzureCredential({
        ...common,
        ...(clientId !== undefined && {
          managedIdentityClientId: clientId,
          workloadIdentityClientId: clientId,
        }),
      });
    case 'environment':
      return new identity.EnvironmentCredential(options);
    case 'workload-identity':
      return new identity.WorkloadIdentityCredential({
        ...common,
        ...(clientId !== undefined && { clientId }),
      });
    case 'managed-identity':
      return clientId === undefined
        ? new identity.ManagedIdentityCredential({ additionalPolicies })
        : new identity.ManagedIdentityCredential({ clientId, additionalPolicies });
    case 'azure-cli':
      return new identity.AzureCliCredential(common);
    case 'azure-developer-cli':
      return new identity.AzureDeveloperCliCredential(common);
    case 'azure-powershell':
      return new identity.AzurePowerShellCredential(common);
  }
}
