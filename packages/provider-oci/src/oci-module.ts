import type { ProviderModule } from '@nodepool-builder/image-builder';
import { authFiles, findCredentials } from './credentials.ts';
import { OciProvider } from './oci-provider.ts';
import { endpointOf, OCI_SETTINGS, parseRepository } from './oci-settings.ts';

/** `type: oci`: images in a registry. The prepared value is the list of credentials files. */
export const OCI_MODULE: ProviderModule<typeof OCI_SETTINGS, readonly string[]> = {
  type: 'oci',
  settings: OCI_SETTINGS,
  *check({ repository, endpoint }) {
    if (parseRepository(repository) === undefined) {
      yield {
        pointer: '/repository',
        reason: 'is not a repository name with its registry',
        remedy: 'write it as registry.example.com/ci/images, in lower case',
      };
    }
    if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
      yield {
        pointer: '/endpoint',
        reason: 'is not a URL',
        remedy: 'write it as https://registry.example.com:5000',
      };
    }
  },
  prepare: async ({ 'auth-file': named, layout }, host) =>
    await Promise.resolve({
      prepared: authFiles(named, host),
      imageType: layout === 'container-image' ? ('tar' as const) : ('qcow2' as const),
    }),
  images: {
    open(entry, services) {
      const repository = parseRepository(entry.repository);
      if (repository === undefined) throw new Error(`"${entry.repository}" is not a repository`); // `check` has validated the repository.
      return new OciProvider({
        entry,
        ...services,
        registry: {
          repository,
          endpoint: endpointOf(entry, repository),
          credentials: async () =>
            await findCredentials(await services.prepared(), repository, `provider ${entry.name}`),
          onTask: services.onTask,
        },
      });
    },
  },
};
