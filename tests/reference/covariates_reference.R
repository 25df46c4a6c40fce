# Bradley-Terry fits with covariates, for the tests, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/covariates_reference.R > tests/reference/covariates.json

suppressPackageStartupMessages({
  library("BradleyTerry2")
  library("multcomp")
  library("psychotree")
})

tolerance <- 1e-9

university_levels <- list(
  study = c("commerce", "other"), english = c("good", "poor"), french = c("good", "poor"),
  spanish = c("good", "poor"), gender = c("female", "male")
)

# Made up for the tests; they are not facts about the schools.
item_table <- data.frame(
  prestige = c(4.5, 3.5, 2.5, 3, 2, 1.5),
  city = c(1, 1, 1, 0, 1, 0),
  row.names = c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
)

# ---------------------------------------------------------------------------- data

treatment <- function(values, levels) {
  values <- factor(values, levels)
  codes <- contr.treatment(levels)
  colnames(codes) <- sprintf("[T.%s]", levels[-1])
  contrasts(values) <- codes
  values
}

# Answered rows only: players i and j (numbers), y = 1, 1/2 or 0, and the
# respondent's row in `students`.
read_survey <- function(name, items, levels) {
  rows <- read.csv(sprintf("data/%s.csv", name), na.strings = "")
  rows <- rows[!is.na(rows$outcome), ]
  students <- read.csv(sprintf("data/%s_students.csv", name))
  for (column in names(levels)) {
    students[[column]] <- treatment(students[[column]], levels[[column]])
  }
  students$age <- 18 + (7 * students$respondent) %% 23
  list(
    items = items, levels = levels, students = students,
    i = match(rows$item1, items), j = match(rows$item2, items),
    y = (rows$outcome + 1) / 2, row = match(rows$respondent, students$respondent)
  )
}

reverse_pair <- function(survey, item1, item2) {
  pair <- survey$items[survey$i] == item1 & survey$items[survey$j] == item2
  survey$y[pair] <- 1 - survey$y[pair]
  survey
}

# A tie becomes two rows of weight 1/2, won once by each item.
long <- function(survey) {
  tie <- survey$y == 0.5
  take <- c(seq_along(tie), which(tie))
  list(
    i = survey$i[take], j = survey$j[take], row = survey$row[take],
    y = c(ifelse(tie, 1, survey$y), numeric(sum(tie))),
    weight = ifelse(tie, 0.5, 1)[take]
  )
}

# One row per comparison: +1 for the first item, -1 for the second.
contrast_rows <- function(data, m) {
  d <- matrix(0, length(data$i), m)
  d[cbind(seq_along(data$i), data$i)] <- 1
  d[cbind(seq_along(data$j), data$j)] <- -1
  d
}

# Every covariate column times every item column, the items running fastest.
products <- function(z, d) do.call(cbind, lapply(seq_len(ncol(z)), function(k) z[, k] * d))

# ------------------------------------------------------------------ three ways to fit

# Fisher scoring; `null` holds orthonormal columns that span what the
# comparisons cannot tell. Adding their projection leaves every step alone and
# turns the inverse of the information into its pseudo-inverse.
scoring <- function(x, data, link, null) {
  family <- binomial(link)
  beta <- numeric(ncol(x))
  projection <- tcrossprod(null)
  for (iteration in 1:100) {
    eta <- drop(x %*% beta)
    p <- family$linkinv(eta)
    slope <- family$mu.eta(eta)
    variance <- p * (1 - p)
    score <- x * (data$weight * (data$y - p) * slope / variance)
    inverse <- solve(crossprod(x, x * (data$weight * slope^2 / variance)) + projection)
    step <- drop(inverse %*% colSums(score))
    beta <- beta + step
    if (max(abs(step)) < 1e-13) break
  }
  stopifnot(max(abs(colSums(score))) < 1e-8)
  meat <- crossprod(rowsum(score, data$row))
  naive <- inverse - projection
  # A won comparison adds log F(u), u = eta or -eta; its second derivative:
  u <- ifelse(data$y == 1, eta, -eta)
  ratio <- family$mu.eta(u) / family$linkinv(u)
  curvature <- if (link == "probit") ratio * (u + ratio) else variance
  observed <- solve(crossprod(x, x * (data$weight * curvature)) + projection) - projection
  list(
    beta = beta, naive = naive, cluster = naive %*% meat %*% naive,
    observed = observed, observed_cluster = observed %*% meat %*% observed,
    loglik = sum(data$weight * log(family$linkinv(u)))
  )
}

# glm on the columns x %*% basis; sandwich gives the clustered covariance.
by_glm <- function(x, data, link, basis) {
  columns <- x %*% basis
  # Half wins are meant, so glm's remark on non-integer successes is not wanted.
  # The deviance settles before the last digits of the coefficients do: start again.
  last <- NULL
  for (round in 1:2) {
    fit <- suppressWarnings(glm(
      data$y ~ 0 + columns,
      weights = data$weight, family = binomial(link), start = last,
      epsilon = 1e-15, maxit = 100
    ))
    last <- coef(fit)
  }
  cluster <- sandwich::vcovCL(fit, cluster = data$row, type = "HC0", cadjust = FALSE)
  spread <- function(covariance) unname(basis %*% covariance %*% t(basis))
  list(
    beta = drop(basis %*% coef(fit)), rank = fit$rank, naive = spread(vcov(fit)),
    cluster = spread(cluster), loglik = -fit$deviance / 2
  )
}

# BTm with the covariate columns as subject-specific predictors of item indicators.
by_btm <- function(survey, z, link, order, item_table = NULL) {
  items <- survey$items
  player <- function(number, first) {
    frame <- data.frame(item = factor(items[number], items))
    frame$first <- rep(first, length(number))
    frame
  }
  indicators <- as.data.frame(diag(length(items)))
  names(indicators) <- items
  students <- as.data.frame(z)
  names(students) <- sprintf("z%d", seq_len(ncol(z)) - 1)
  if (is.null(item_table)) {
    terms <- c("item", outer(items[-1], names(students)[-1], sprintf, fmt = "%s[item]:%s[row]"))
  } else {
    indicators <- item_table
    terms <- sprintf("%s[item]", names(item_table))
  }
  data <- list(
    answers = data.frame(
      won = survey$y, lost = 1 - survey$y, row = factor(survey$row, seq_len(nrow(students)))
    ),
    player1 = player(survey$i, 1), player2 = player(survey$j, 0),
    students = students, indicators = indicators
  )
  last <- NULL
  for (round in 1:2) {
    fit <- suppressWarnings(BTm(
      cbind(won, lost), player1, player2,
      formula = reformulate(c(terms, if (order) "first")), id = "item", refcat = items[1],
      family = binomial(link), data = data, start = last, epsilon = 1e-15, maxit = 100
    ))
    last <- coef(fit)
  }
  sorted <- function(name) paste(sort(strsplit(name, ":", fixed = TRUE)[[1]]), collapse = ":")
  wanted <- c(if (is.null(item_table)) c(paste0("item", items[-1]), terms[-1]) else terms,
              if (order) "first")
  at <- match(vapply(wanted, sorted, ""), vapply(names(coef(fit)), sorted, ""))
  stopifnot(!anyNA(at), length(at) == length(coef(fit)))
  list(beta = unname(coef(fit)[at]), naive = unname(vcov(fit)[at, at]))
}

# Worths by psychotools::btmodel for some of the students. It models ties by
# Davidson's method, so each student enters twice, a tie won by each item once.
answers <- function(survey, chosen) {
  m <- length(survey$items)
  pairs <- which(upper.tri(diag(m)), arr.ind = TRUE)
  table <- array(NA_real_, c(nrow(survey$students), nrow(pairs)))
  table[cbind(survey$row, match(paste(survey$i, survey$j), paste(pairs[, 1], pairs[, 2])))] <-
    2 * survey$y - 1
  table <- table[chosen, , drop = FALSE]
  won <- rbind(ifelse(table == 0, 1, table), ifelse(table == 0, -1, table))
  psychotools::paircomp(won, labels = survey$items, mscale = c(-1, 1))
}

by_btmodel <- function(survey, chosen) {
  fit <- psychotools::btmodel(
    answers(survey, chosen), type = "logit", ref = 1, undecided = FALSE,
    epsilon = 1e-15, maxit = 100
  )
  centring <- centred(length(survey$items))[, -1]
  list(
    worth = drop(centring %*% fit$coefficients),
    # Everybody entered twice.
    naive = 2 * centring %*% fit$vcov %*% t(centring), loglik = fit$loglik / 2
  )
}

# The worths in the two leaves of a tree that is made to split by `column`.
by_bttree <- function(survey, column) {
  everybody <- seq_len(nrow(survey$students))
  data <- data.frame(group = rep(survey$students[[column]], 2))
  data$answer <- answers(survey, everybody)
  tree <- bttree(
    answer ~ group, data = data, type = "logit", undecided = FALSE, ref = 1,
    alpha = 1, maxdepth = 2
  )
  leaves <- sapply(nodeids(tree, terminal = TRUE), function(id) {
    leaf <- partykit::nodeapply(tree, id, function(node) node$info)[[1]]
    centred(length(survey$items))[, -1] %*% leaf$coefficients
  })
  stopifnot(ncol(leaves) == 2)
  leaves
}

# -------------------------------------------------------------------------- fits

centred <- function(m) diag(m) - 1 / m
block <- function(a, b) {
  rbind(
    cbind(a, matrix(0, nrow(a), ncol(b))),
    cbind(matrix(0, nrow(b), ncol(a)), b)
  )
}
furthest <- function(a, b) max(abs(a - b))
wald <- function(value, covariance) {
  # The values sum to zero: one of them is redundant.
  value <- value[-1]
  drop(value %*% solve(covariance[-1, -1], value))
}

respondent_fit <- function(survey, formula, link = "logit", order = FALSE, ages = NULL) {
  items <- survey$items
  m <- length(items)
  z <- model.matrix(formula, survey$students)
  term <- attr(z, "assign")
  labels <- colnames(z) <- sub("(Intercept)", "Intercept", colnames(z), fixed = TRUE)
  data <- long(survey)
  x <- products(z[data$row, , drop = FALSE], contrast_rows(data, m))
  null <- diag(ncol(z)) %x% rep(1 / sqrt(m), m)
  basis <- diag(ncol(z)) %x% centred(m)[, -1]
  if (order) {
    x <- cbind(x, 1)
    null <- rbind(null, 0)
    basis <- block(basis, diag(1))
  }
  fit <- by_glm(x, data, link, basis)
  own <- scoring(x, data, link, null)
  btm <- by_btm(survey, z, link, order)
  agreement <- c(
    glm_scoring_coefficients = furthest(fit$beta, own$beta),
    glm_scoring_naive = furthest(fit$naive, own$naive),
    glm_scoring_cluster = furthest(fit$cluster, own$cluster),
    glm_scoring_loglik = furthest(fit$loglik, own$loglik),
    glm_BTm_coefficients = furthest(fit$beta, basis %*% btm$beta),
    glm_BTm_naive = furthest(fit$naive, basis %*% btm$naive %*% t(basis))
  )

  positions <- split(seq_len(m * ncol(z)), rep(seq_len(ncol(z)), each = m))
  by_column <- function(values) setNames(lapply(positions, function(at) values[at]), labels)
  errors <- function(covariance) by_column(sqrt(diag(covariance)))
  names_of_terms <- c("Intercept", attr(terms(formula), "term.labels"))
  tests <- lapply(unique(term), function(t) {
    # No covariate here has more than two levels, so a term is one column.
    stopifnot(sum(term == t) == 1)
    at <- positions[[which(term == t)]]
    list(df = m - 1, naive = wald(fit$beta[at], fit$naive[at, at]),
         cluster = wald(fit$beta[at], fit$cluster[at, at]))
  })

  variables <- all.vars(formula)
  grid <- do.call(expand.grid, c(
    rev(lapply(setNames(variables, variables), function(v) {
      if (v == "age") ages else survey$levels[[v]]
    })),
    stringsAsFactors = FALSE
  ))[variables]
  if (length(variables) == 0) grid <- data.frame(row.names = 1)
  for (v in setdiff(variables, "age")) grid[[v]] <- treatment(grid[[v]], survey$levels[[v]])
  pattern_z <- model.matrix(formula, grid)
  saturated <- nrow(grid) == ncol(z) && !order && link == "logit" && !("age" %in% variables)
  worths <- seq_len(m * ncol(z))
  leaf_loglik <- 0
  patterns <- lapply(seq_len(nrow(grid)), function(row) {
    spread <- t(pattern_z[row, ]) %x% diag(m)
    worth <- drop(spread %*% fit$beta[worths])
    naive <- spread %*% fit$naive[worths, worths] %*% t(spread)
    cluster <- spread %*% fit$cluster[worths, worths] %*% t(spread)
    if (saturated) {
      here <- rowSums(abs(sweep(z, 2, pattern_z[row, ]))) == 0
      leaf <- by_btmodel(survey, here)
      leaf_loglik <<- leaf_loglik + leaf$loglik
      agreement["glm_btmodel_worths"] <<-
        max(0, agreement["glm_btmodel_worths"], furthest(worth, leaf$worth), na.rm = TRUE)
      agreement["glm_btmodel_naive"] <<-
        max(0, agreement["glm_btmodel_naive"], furthest(naive, leaf$naive), na.rm = TRUE)
    }
    list(
      at = lapply(as.list(grid[row, , drop = FALSE]),
                  function(v) if (is.factor(v)) as.character(v) else v),
      worth = worth, naive = sqrt(diag(naive)), cluster = sqrt(diag(cluster))
    )
  })
  if (saturated) agreement["glm_btmodel_loglik"] <- furthest(fit$loglik, leaf_loglik)
  if (saturated && length(variables) == 1) {
    leaves <- by_bttree(survey, variables)
    agreement["glm_bttree_worths"] <- furthest(leaves, sapply(patterns, `[[`, "worth"))
  }
  if (anyNA(agreement) || any(agreement >= tolerance)) {
    stop(deparse(formula), ": ", paste(names(agreement), signif(agreement, 2), collapse = ", "))
  }

  result <- list(
    parameters = fit$rank, loglik = fit$loglik, deviance = -2 * fit$loglik,
    coefficients = by_column(fit$beta),
    bse = list(naive = errors(fit$naive), cluster = errors(fit$cluster)),
    wald = setNames(tests, names_of_terms)[seq_along(tests)],
    patterns = patterns
  )
  if (link == "probit") {
    result$bse$observed <- errors(own$observed)
    result$bse$observed_cluster <- errors(own$observed_cluster)
  }
  if (order) {
    last <- length(fit$beta)
    result$delta <- list(
      value = fit$beta[last], naive = sqrt(fit$naive[last, last]),
      cluster = sqrt(fit$cluster[last, last])
    )
  }
  result$agreement <- max(agreement)
  result
}

item_fit <- function(survey, table) {
  items <- survey$items
  m <- length(items)
  table <- table[items, , drop = FALSE]
  data <- long(survey)
  d <- contrast_rows(data, m)
  x <- d %*% as.matrix(table)
  fit <- by_glm(x, data, "logit", diag(ncol(x)))
  own <- scoring(x, data, "logit", matrix(0, ncol(x), 1))
  one <- matrix(1, nrow(survey$students), 1)
  btm <- by_btm(survey, one, "logit", FALSE, table)
  free <- by_glm(d, data, "logit", centred(m)[, -1])
  # Orthonormal contrasts among the worths that the table cannot produce.
  outside <- qr.Q(qr(cbind(1, as.matrix(table))), complete = TRUE)[, -(1:(1 + ncol(table)))]
  unfit <- function(covariance) {
    rest <- drop(crossprod(outside, free$beta))
    drop(rest %*% solve(t(outside) %*% covariance %*% outside, rest))
  }
  agreement <- c(
    furthest(fit$beta, own$beta), furthest(fit$naive, own$naive),
    furthest(fit$cluster, own$cluster), furthest(fit$loglik, own$loglik),
    furthest(fit$beta, btm$beta), furthest(fit$naive, btm$naive)
  )
  stopifnot(agreement < tolerance)
  named <- function(values) as.list(setNames(values, names(table)))
  list(
    item_data = lapply(table, identity), parameters = fit$rank, loglik = fit$loglik,
    deviance = -2 * fit$loglik, coefficients = named(fit$beta),
    bse = list(naive = named(sqrt(diag(fit$naive))), cluster = named(sqrt(diag(fit$cluster)))),
    worth = drop(centred(m) %*% as.matrix(table) %*% fit$beta),
    lack_of_fit = list(
      df = ncol(outside), likelihood_ratio = 2 * (free$loglik - fit$loglik),
      wald_naive = unfit(free$naive), wald_cluster = unfit(free$cluster)
    ),
    agreement = max(agreement)
  )
}

# ------------------------------------------- quasi-variances and all pairwise differences

pairs_of <- function(m) t(combn(m, 2))

# Least squares of log(v_ij) on log(q_i + q_j) by Gauss-Newton in log q: what
# qvcalc fits by glm with that function's default stopping rule.
quasi_variances <- function(variances, start) {
  pairs <- pairs_of(length(start))
  target <- log(variances)
  at <- log(start)
  for (iteration in 1:200) {
    q <- exp(at)
    total <- q[pairs[, 1]] + q[pairs[, 2]]
    jacobian <- matrix(0, nrow(pairs), length(q))
    jacobian[cbind(seq_len(nrow(pairs)), pairs[, 1])] <- q[pairs[, 1]] / total
    jacobian[cbind(seq_len(nrow(pairs)), pairs[, 2])] <- q[pairs[, 2]] / total
    step <- solve(crossprod(jacobian), crossprod(jacobian, target - log(total)))
    at <- at + drop(step)
    if (max(abs(step)) < 1e-14) break
  }
  stopifnot(max(abs(step)) < 1e-13)
  exp(at)
}

# P(max |t| <= c) without mvtnorm: given the direction of a standard normal vector
# its length decides, so the mean over directions of a chi-squared probability. The
# directions come from randomly shifted lattices; the shifts tell the error.
directions <- function(k, shifts = 8, points = 2^16) {
  set.seed(20010101)
  generator <- sqrt(c(2, 3, 5, 7, 11))[seq_len(k)]
  lapply(seq_len(shifts), function(shift) {
    u <- (outer(seq_len(points), generator) + rep(runif(k), each = points)) %% 1
    normal <- qnorm(pmin(pmax(u, 1e-16), 1 - 1e-16))
    normal / sqrt(rowSums(normal^2))
  })
}

all_pairs <- function(survey, level = 0.95) {
  m <- length(survey$items)
  pairs <- pairs_of(m)
  contrasts <- matrix(0, nrow(pairs), m)
  contrasts[cbind(seq_len(nrow(pairs)), pairs[, 1])] <- 1
  contrasts[cbind(seq_len(nrow(pairs)), pairs[, 2])] <- -1
  rownames(contrasts) <- paste(survey$items[pairs[, 1]], survey$items[pairs[, 2]], sep = ":")
  data <- long(survey)
  fit <- by_glm(contrast_rows(data, m), data, "logit", centred(m)[, -1])
  towards <- directions(m - 1)
  one <- function(covariance) {
    covariance <- (covariance + t(covariance)) / 2
    difference <- drop(contrasts %*% fit$beta)
    se <- sqrt(rowSums((contrasts %*% covariance) * contrasts))

    rough <- qvcalc::qvcalc(covariance, labels = survey$items)
    quasi <- quasi_variances(se^2, rough$qvframe$quasiVar)
    rough$qvframe$quasiVar <- quasi
    relative <- sqrt((quasi[pairs[, 1]] + quasi[pairs[, 2]]) / se^2) - 1
    by_qvcalc <- qvcalc::qvcalc(covariance)
    quasi_agreement <- c(
      furthest(log(by_qvcalc$qvframe$quasiVar), log(quasi)), furthest(by_qvcalc$relerrs, relative)
    )
    stopifnot(quasi_agreement < 1e-4)

    roots <- eigen(covariance, symmetric = TRUE)
    half <- roots$vectors[, -m] %*% diag(sqrt(roots$values[-m]))
    unit <- (contrasts %*% half) / se
    longest <- lapply(towards, function(u) {
      projected <- abs(u %*% t(unit))
      do.call(pmax, lapply(seq_len(ncol(projected)), function(k) projected[, k]))
    })
    beyond <- function(c, of = longest) {
      vapply(of, function(l) mean(pchisq((c / l)^2, m - 1, lower.tail = FALSE)), 0)
    }
    critical <- function(of) {
      uniroot(function(c) mean(beyond(c, of)) - (1 - level), c(1.9, 4), tol = 1e-9)$root
    }
    each <- vapply(seq_along(longest), function(s) critical(longest[s]), 0)
    tails <- vapply(abs(difference / se), beyond, numeric(length(longest)))
    error <- function(values) sd(values) / sqrt(length(values))
    p <- colMeans(tails)

    set.seed(1)
    tests <- glht(parm(setNames(fit$beta, survey$items), covariance), linfct = contrasts)
    precise <- mvtnorm::GenzBretz(maxpts = 1e5, abseps = 1e-4, releps = 0)
    single <- summary(tests, test = adjusted("single-step", algorithm = precise))$test$pvalues
    by_multcomp <- attr(confint(tests, level = level)$confint, "calpha")
    # The error multcomp gives is the largest of the probabilities' errors.
    stopifnot(
      furthest(single, p) < 3e-4,
      abs(by_multcomp - critical(longest)) < 5e-3
    )
    list(
      covariance = covariance,
      quasi_variance = quasi, relative_error = relative,
      worst_errors = qvcalc::worstErrors(rough), qvcalc_difference = max(quasi_agreement),
      difference = difference, se = se, p_adjusted = signif(p, 7),
      p_relative_error = max(apply(tails, 2, error) / p),
      p_multcomp = signif(pmax(as.vector(single), 0), 5), p_multcomp_error = attr(single, "error"),
      critical = critical(longest), critical_error = error(each), critical_multcomp = by_multcomp
    )
  }
  list(pairs = rownames(contrasts), naive = one(fit$naive), cluster = one(fit$cluster))
}

# ------------------------------------------------------------------------ output

fits <- function(survey, formulas, ...) {
  setNames(lapply(formulas, function(f) respondent_fit(survey, f, ...)),
           vapply(formulas, deparse, ""))
}
described <- function(survey, fitted) {
  list(items = survey$items, respondents = nrow(survey$students),
       comparisons = length(survey$y), ties = sum(survey$y == 0.5), fits = fitted)
}

university <- read_survey("university", rownames(item_table), university_levels)
immigration <- read_survey(
  "immigration", c("crimRate", "position", "socBurd", "culture"),
  list(sex = c("female", "male"))
)
by_students <- list(
  ~1, ~gender, ~study, ~gender + study, ~gender * study, ~english + french + spanish
)
packages <- c(
  "BradleyTerry2", "psychotools", "psychotree", "sandwich", "qvcalc", "multcomp", "mvtnorm",
  "jsonlite"
)

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/covariates_reference.R",
      date = as.character(Sys.Date()),
      R = as.character(getRversion()),
      packages = lapply(setNames(packages, packages), function(p) as.character(packageVersion(p))),
      model = paste(
        "P(item1 preferred to item2) = F(delta + w[item1] - w[item2]), F logistic (normal under",
        "'probit'), delta = 0 except under 'order'; w = sum over columns of value * coefficients"
      ),
      data = paste(
        "a tie is two rows of weight 1/2, one won by each item; missing answers are dropped;",
        "treatment coding, the first declared level is the reference;",
        "age = 18 + (7 * respondent) modulo 23 is made up, so are the item_data"
      ),
      arrays = "in the order of items, or of pairs; coefficients and worths sum to zero over items",
      coefficients = paste(
        "Intercept: the worths of the reference pattern (age 0); the other columns: what one unit",
        "adds to them; maximum likelihood, no penalty"
      ),
      naive = "standard errors or tests from the inverse Fisher information, comparisons independent",
      cluster = "the same from the sandwich, respondents as clusters, no small-sample factor",
      observed = "probit only: bse with the observed in place of the expected information",
      parameters = "number of free parameters",
      loglik = "over the rows just described, natural logarithms; deviance = -2 * loglik",
      wald = "chi-squared and df of all of a term's coefficients being zero, the other terms kept",
      patterns = "worth, with naive and cluster standard errors, at these values of the covariates",
      agreement = paste(
        "largest absolute difference of coefficients, covariances (naive, cluster) and loglik",
        "between glm with sandwich::vcovCL, Fisher scoring by hand and BradleyTerry2::BTm, and,",
        "where the patterns are as many as the columns, of the worths from psychotools::btmodel",
        "on each pattern's students (psychotree::bttree with one factor); below 1e-9"
      ),
      lack_of_fit = "item covariates against free worths: likelihood ratio and Wald chi-squared",
      all_pairs = paste(
        "of the '~1' worths under each covariance: quasi_variance minimises the sum over pairs of",
        "(log v[ij] - log(q[i] + q[j]))^2, as qvcalc does with a looser stopping rule",
        "(qvcalc_difference: largest in log q or relative_error);",
        "relative_error = sqrt((q[i] + q[j]) / v[ij]) - 1; worst_errors: qvcalc::worstErrors;",
        "p_adjusted and critical: single-step max-|t| p-values and 95% two-sided quantile by",
        "randomly shifted lattices over directions, with their standard errors (p relative);",
        "p_multcomp with its greatest error and critical_multcomp: by multcomp::glht"
      )
    ),
    university = described(university, c(
      fits(university, by_students),
      fits(university, list(~age, ~gender + age), ages = c(20, 40))
    )),
    university_order = fits(university, list(~1, ~gender), order = TRUE),
    university_probit = fits(university, list(~1, ~gender), link = "probit"),
    university_items = item_fit(university, item_table),
    university_1998 = fits(reverse_pair(university, "Barcelona", "Stockholm"), by_students[c(1, 2, 4)]),
    immigration = described(immigration, fits(immigration, list(~1, ~sex))),
    all_pairs = list(university = all_pairs(university), immigration = all_pairs(immigration))
  ),
  auto_unbox = TRUE, digits = I(12), pretty = TRUE
), "\n", sep = "")
