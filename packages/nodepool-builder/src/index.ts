export type {
  Configuration,
  DiskImageConfiguration,
  ProviderConfiguration,
  ProviderImageConfiguration,
} from './configuration/configuration.ts';
export { ConfigurationError, formatDiagnostic, type LocatedDiagnostic } from './configuration/diagnostic.ts';
export type { GearmanServer } from './configuration/gearman-server.ts';
export { type LoadedConfiguration, type LoadOptions, loadConfiguration } from './configuration/load.ts';
export { NodepoolBuilder, type NodepoolBuilderOptions } from './daemon/nodepool-builder.ts';
export { type MainOptions, main } from './main.ts';
export { ModuleError } from './module-error.ts';
export { type Module, Modules } from './modules.ts';
