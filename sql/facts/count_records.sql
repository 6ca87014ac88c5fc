SELECT coalesce(sum({{times}}), 0) AS records FROM {{table}};
