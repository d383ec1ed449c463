/** What a provider of `nodepool.yaml` says of its cloud by itself; each of it overrides `clouds.yaml`. */
export interface NodepoolCredentials {
  /** The provider's name, for messages. */
  readonly name: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** `auth-url`. */
  readonly authUrl?: string | undefined;
  /** `project-id`. */
  readonly projectId?: string | undefined;
  /** `project-name`. */
  readonly projectName?: string | undefined;
  /** `api-timeout`, in seconds. */
  readonly apiTimeout?: number | undefined;
}

/** Whose settings are wanted. */
export interface SettingsRequest {
  readonly provider: NodepoolCredentials;
  /** `cloud` of the provider. Default: `OS_CLOUD`, else the cloud of the environment, else the only cloud, unless the provider has credentials. */
  readonly cloud?: string | undefined;
  /** `region-name` of the provider. Default: the cloud's first region. */
  readonly regionName?: string | undefined;
}

/** Where settings are looked for. */
export interface SettingsPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The user's home directory. */
  readonly home: string;
  /** Told what is odd but no error: a file that cannot be read, a profile that nobody knows. */
  readonly warn: (message: string) => void;
}
