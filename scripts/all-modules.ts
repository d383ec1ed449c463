import { resolve } from 'node:path';
import { Modules, OPTIONAL_PACKAGES } from '../packages/nodepool-builder/src/configuration/modules.ts';
import { loadPlugins } from '../packages/nodepool-builder/src/configuration/plugins.ts';

const providers = Object.keys(OPTIONAL_PACKAGES).map((type) => ({ type }));

/** The built-in modules and those of all optional providers. */
export const { modules: ALL_MODULES, diagnostics } = await loadPlugins(
  { providers },
  resolve('nodepool.yaml'),
  Modules.builtIn,
);
if (diagnostics.length > 0) throw new Error(JSON.stringify(diagnostics));
