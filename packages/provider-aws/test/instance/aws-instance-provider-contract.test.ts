// Not a unit test: it starts servers.
import { instanceProviderContract } from '@nodepool-builder/image-builder/testing';
import { instanceFixture, PUBLIC_KEY, runThere } from './instance-fixture.ts';

instanceProviderContract('AwsInstanceProvider', async (t) => {
  const { openInstances, double } = await instanceFixture(t);
  return {
    open: () => openInstances(),
    request: { image: 'base', publicKey: PUBLIC_KEY, port: double.port },
    probe: async (address) => void (await runThere(address, 'true')),
    run: runThere,
  };
});

instanceProviderContract('AwsInstanceProvider with pages, and images that are pending', async (t) => {
  const { openInstances, double } = await instanceFixture(t, { pendingLists: 2, pageSize: 5 });
  return {
    open: () => openInstances(),
    request: { image: 'base', publicKey: PUBLIC_KEY, port: double.port },
    probe: async (address) => void (await runThere(address, 'true')),
    run: runThere,
  };
});
